# What every program may use; the linker leaves out what one does not.
COMMON_SRCS := \
    common/encoding.c \
    common/endpoint.c \
    common/endpoint_socket.c \
    common/escape.c \
    common/failure.c \
    common/io.c \
    common/json.c \
    common/json_grammar.c \
    common/json_string.c \
    common/json_writer.c \
    common/line_buffer.c \
    common/number.c \
    common/pages.c \
    common/preface.c \
    common/secret.c \
    common/tls_link.c \
    common/tls_pin.c \
    common/tls_profile.c \
    common/utf8.c

# Guest programs only: what archives built for glibc expect of it and musl lacks, and a formatter that is smaller
# than musl's.
COMMON_GUEST_SRCS := common/fortify_shim.c common/format.c common/format_libc.c
