# codev-init-fail-stage, a build of codev-init whose start fails in a chosen stage, and the image
# that starts it.
INIT_FAIL_STAGE_SRCS := $(INIT_SRCS) $(NFT_SRCS) $(INIT_MAIN) test/harness/init_fail_stage.c
codev-init-fail-stage_LDFLAGS := -Wl,--wrap=stage_run_all
FAIL_STAGE_IMAGE := $(GUEST)/fail-stage/rootfs.erofs

$(eval $(call guest_program,codev-init-fail-stage,$(INIT_FAIL_STAGE_SRCS),GUEST_FIXED))
programs: $(GUEST)/codev-init-fail-stage

$(FAIL_STAGE_IMAGE): test/harness/variant_image.py $(GUEST)/codev-init-fail-stage \
	$(GUEST)/rootfs.tar | packages
	$(call say,IMAGE,$@)
	$(Q)test/harness/variant_image.py $(GUEST)/rootfs.tar $(@D) \
		usr/sbin/codev-init=$(GUEST)/codev-init-fail-stage
qemu test: $(FAIL_STAGE_IMAGE)
