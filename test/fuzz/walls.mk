# Fuzz targets of the guest's walls: what init/ reads that others wrote.
FUZZ_TARGETS += account_files permissions
fuzz_account_files_SRCS := test/fuzz/fuzz_account_files.c init/machine/account_files.c
fuzz_permissions_SRCS := test/fuzz/fuzz_permissions.c init/server/permissions_text.c $(COMMON_SRCS)
