# What `make image` makes, and the Debian-flavoured image: for people who want a usable system inside, and for the
# compatibility tests.
DEBIAN_IMAGE := $(GUEST)/rootfs-debian.erofs
DEBIAN_TAR := $(GUEST)/rootfs-debian.tar
DEBIAN_INPUTS := rootfs/debian.sh rootfs/apt.sh rootfs/debian-packages rootfs/debian-exclude rootfs/debian-tree

image: $(if $(filter debian,$(FLAVOR)),$(DEBIAN_IMAGE) $(DEBIAN_TAR),$(IMAGE))

$(DEBIAN_IMAGE): $(DEBIAN_INPUTS) $(GUEST)/rootfs.tar | packages
	$(call say,IMAGE,$@)
	$(Q)rootfs/debian.sh $(ARCH) $(GUEST)

$(DEBIAN_TAR): $(DEBIAN_INPUTS) $(GUEST)/rootfs.tar | packages
	$(call say,IMAGE,$@)
	$(Q)rootfs/debian.sh $(ARCH) $(GUEST) tar
