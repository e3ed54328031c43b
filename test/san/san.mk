# The guest's own programs under AddressSanitizer and UBSan (SAN=1), in an image of their own: make
# SAN=1 qemu. They are the host's objects, so the guest has the host's architecture.
SAN_GUEST := $(VARIANT)/guest/$(ARCH)
SAN_PROGRAMS := $(SAN_GUEST)/programs
SAN_IMAGE := $(SAN_GUEST)/rootfs.erofs
SAN_FAIL_STAGE_IMAGE := $(SAN_GUEST)/fail-stage/rootfs.erofs
SAN_SRCS := test/san/options.c test/san/plant.c
SAN_FIRST_SRCS := test/san/first.c

ifneq ($(SAN),)
$(eval $(call host_program,$(SAN_PROGRAMS)/codev-init,\
	$(INIT_SRCS) $(NFT_SRCS) $(INIT_MAIN) $(SAN_SRCS)))
$(eval $(call host_program,$(SAN_PROGRAMS)/codev-init-fail-stage,\
	$(INIT_FAIL_STAGE_SRCS) $(SAN_SRCS),\
	$(codev-init-fail-stage_LDFLAGS)))
$(eval $(call host_program,$(SAN_PROGRAMS)/codev-agent,$(AGENT_SRCS) $(AGENT_MAIN) $(SAN_SRCS)))
$(eval $(call guest_program,san-first,$(SAN_FIRST_SRCS),GUEST_PIE))

$(SAN_IMAGE): test/san/image.py $(SAN_PROGRAMS)/codev-init $(SAN_PROGRAMS)/codev-agent \
	$(GUEST)/san-first \
		$(GUEST)/rootfs.tar | packages
	$(call say,IMAGE,$@)
	$(Q)cp $(GUEST)/san-first $(SAN_PROGRAMS)/first
	$(Q)test/san/image.py $(GUEST)/rootfs.tar $(SAN_PROGRAMS) $(SAN_GUEST)

$(SAN_FAIL_STAGE_IMAGE): test/harness/variant_image.py $(SAN_PROGRAMS)/codev-init-fail-stage \
	$(SAN_IMAGE)
	$(call say,IMAGE,$@)
	$(Q)test/harness/variant_image.py $(SAN_GUEST)/rootfs.tar $(@D) \
		usr/sbin/codev-init.san=$(SAN_PROGRAMS)/codev-init-fail-stage

.PHONY: sanitized-guest
sanitized-guest: $(SAN_IMAGE) $(SAN_FAIL_STAGE_IMAGE)
qemu: sanitized-guest
endif
