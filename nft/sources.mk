# The firewall; linked into codev-init.
NFT_SRCS := \
    nft/batch.c \
    nft/channel.c \
    nft/commit.c \
    nft/expression.c \
    nft/firewall.c \
    nft/policy.c \
    nft/verify.c
