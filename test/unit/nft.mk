# Unit tests of nft/, and the program through which test/system/test_nft.py drives it on the real
# kernel.
UNIT_TESTS += nft_policy nft_firewall
NFT_TEST_SRCS := $(NFT_SRCS) $(COMMON_SRCS)
unit_nft_policy_SRCS := test/unit/nft/test_nft_policy.c $(NFT_TEST_SRCS)
unit_nft_firewall_SRCS := test/unit/nft/test_nft_firewall.c test/harness/fake_nftables.c \
	$(NFT_TEST_SRCS)
unit_nft_firewall_LDFLAGS := -Wl,--wrap=socket,--wrap=bind,--wrap=getsockname,--wrap=setsockopt \
    -Wl,--wrap=sendto,--wrap=recvmsg,--wrap=mnl_socket_close

NFT_DRIVER := $(VARIANT)/test/nft_driver
host: $(NFT_DRIVER)
$(NFT_DRIVER): $(patsubst %.c,$(HOST_OBJ)/%.o,test/harness/nft_driver.c $(NFT_TEST_SRCS))
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(HOST_CC) $(HOST_CFLAGS) $(HOST_LDFLAGS) -o $@ $^ $(HOST_STATIC)
