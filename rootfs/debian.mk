# What `make image` makes, and the Debian-flavoured image: for people who want a usable system
# inside, and for the compatibility tests.
DEBIAN_IMAGE := $(GUEST)/rootfs-debian.erofs
DEBIAN_TAR := $(GUEST)/rootfs-debian.tar
DEBIAN_INPUTS := rootfs/debian.sh rootfs/apt.sh rootfs/debian-packages rootfs/debian-exclude \
	rootfs/debian-tree

image: $(if $(filter debian,$(FLAVOR)),$(DEBIAN_IMAGE) $(DEBIAN_TAR),$(IMAGE))

$(DEBIAN_IMAGE): $(DEBIAN_INPUTS) $(GUEST)/rootfs.tar | packages
	$(call say,IMAGE,$@)
	$(Q)rootfs/debian.sh $(ARCH) $(GUEST)

$(DEBIAN_TAR): $(DEBIAN_INPUTS) $(GUEST)/rootfs.tar | packages
	$(call say,IMAGE,$@)
	$(Q)rootfs/debian.sh $(ARCH) $(GUEST) tar

# What tests need it: all of them together, or T=FILE where the file names it. Emulating a processor
# of another kind would take them too long.
DEBIAN_TESTED := $(if $(filter $(ARCH),$(HOST_ARCH)),$(DEBIAN_IMAGE))
DEBIAN_TESTS := $(patsubst test/qemu/%.py,%,$(shell grep -ls rootfs-debian test/qemu/test_*.py))
DEBIAN_WANTED := $(if $(if $(T),$(strip $(foreach test,$(DEBIAN_TESTS),$(findstring \
	$(test),$(T)))),all),$(DEBIAN_TESTED))
