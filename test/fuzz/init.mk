# PID 1's only parser of a text: the boot configuration.
FUZZ_TARGETS += boot_config
fuzz_boot_config_SRCS = test/fuzz/fuzz_boot_config.c $(BOOT_CONFIG_SRCS) $(COMMON_SRCS)
