# Unit tests of init/ that need no machine of their own: its pure parts, and the control channel over socket pairs.
INIT_UNIT_TESTS := format
UNIT_TESTS += $(INIT_UNIT_TESTS)
unit_format_SRCS := test/unit/test_format.c common/format.c
