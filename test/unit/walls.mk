# Unit tests of the guest's walls (init/). Each is linked with all of init/. Those that need root do
# their work in a forked child, in namespaces of its own, and are skipped without root.
WALLS_UNIT_TESTS := account account_files drop dropped_child environment gitconfig hostname \
	mount_paths mount_target mounts network_prepare \
	permissions permissions_text sandbox_file seccomp tool_files
UNIT_TESTS += $(WALLS_UNIT_TESTS)
$(foreach test,$(WALLS_UNIT_TESTS),$(eval unit_$(test)_SRCS := $(call unit_source,$(test)) \
	$(INIT_SRCS) $(NFT_SRCS) $(COMMON_SRCS)))
unit_mount_paths_SRCS += qemu-harness/launcher/folders/mount_spec.c

# Drops as the server does and executes a program, for test/system/test_drop.py.
DROP_DRIVER := $(VARIANT)/test/drop_driver
host: $(DROP_DRIVER)
$(DROP_DRIVER): $(patsubst %.c,$(HOST_OBJ)/%.o,test/harness/drop_driver.c init/walls/drop.c \
		init/system/empty_root.c init/system/mount_api.c init/walls/seccomp.c init/machine/cgroups.c \
	$(COMMON_SRCS))
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(HOST_CC) $(HOST_CFLAGS) $(HOST_LDFLAGS) -o $@ $^ $(HOST_STATIC)

# Prints what init would set for tools, for test/system/test_tools_host.py.
TOOL_SETTINGS := $(VARIANT)/test/tool_settings
host: $(TOOL_SETTINGS)
$(TOOL_SETTINGS): $(patsubst %.c,$(HOST_OBJ)/%.o,test/harness/tool_settings.c $(INIT_SRCS) \
		$(NFT_SRCS) $(COMMON_SRCS))
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(HOST_CC) $(HOST_CFLAGS) $(HOST_LDFLAGS) -o $@ $^ $(HOST_STATIC)
