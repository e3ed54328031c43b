# What every program may use; the linker leaves out what one does not.
COMMON_SRCS := \
    common/os/child_linux.c \
    common/text/encoding.c \
    common/net/endpoint.c \
    common/net/endpoint_linux.c \
    common/net/endpoint_socket.c \
    common/text/escape.c \
    common/os/failure.c \
    common/os/io.c \
    common/json/json.c \
    common/json/json_grammar.c \
    common/json/json_writer.c \
    common/text/line_buffer.c \
    common/text/number.c \
    common/os/memory_linux.c \
    common/wire/guest_path.c \
    common/wire/piece.c \
    common/wire/preface.c \
    common/os/seccomp_filter_linux.c \
    common/os/secret.c \
    common/net/tls_link.c \
    common/net/tls_pin.c \
    common/net/tls_profile.c \
    common/text/utf8.c

# Guest programs only: what archives built for glibc expect of it and musl lacks.
COMMON_GUEST_SRCS := common/os/fortify_shim.c
