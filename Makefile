# One entry for everything. `make` builds the host programs and the guest for ARCH (x86_64 or
# aarch64); `make help` lists the rest. Everything that a build makes lies in build/ or, where it is
# dear (kernel, downloaded packages), in the cache folder ${XDG_CACHE_HOME:-~/.cache}/codev-sandbox,
# by a hash of what it was made from.
#
# Sources are listed explicitly by each folder's sources.mk; a program whose list is absent is left
# out. There are up to four kinds of object for one source, each with its own flags and folder under
# build/obj: host, host with sanitizers (SAN=1), guest (musl, per ARCH), fuzz (clang). A change of
# flags rebuilds what was built with the old ones.

ARCH ?= x86_64
HOST_ARCH := $(shell uname -m)
OTHER_ARCH := $(filter-out $(ARCH),x86_64 aarch64)
FLAVOR ?= small
FUZZ_SECONDS ?= 5
SOAK_SECONDS ?= 600
BOOTS ?= 200
SAN ?=
FRESH ?=
T ?=
V ?=

MAKEFLAGS += --no-builtin-rules --no-builtin-variables
ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc)
endif
.DELETE_ON_ERROR:
.SUFFIXES:
SHELL := /bin/sh

ifeq ($(filter $(FLAVOR),small debian),)
$(error no image of FLAVOR=$(FLAVOR): small or debian)
endif
ifeq ($(filter $(ARCH),x86_64 aarch64),)
$(error no guest for ARCH=$(ARCH): x86_64 or aarch64)
endif

B := build
VARIANT := $(B)$(if $(SAN),/san)
BIN := $(VARIANT)/bin
GUEST := $(B)/guest/$(ARCH)
SYSROOT := $(B)/sysroot/$(ARCH)
HOST_SYSROOT := $(B)/sysroot/$(HOST_ARCH)
HOST_OBJ := $(B)/obj/$(if $(SAN),san,host)
GUEST_OBJ := $(B)/obj/$(ARCH)
FUZZ_OBJ := $(B)/obj/fuzz
export SOURCE_DATE_EPOCH ?= 1790000000

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' $(1) $(2))

# --- sources --------------------------------------------------------------------------------------

-include common/sources.mk nft/sources.mk init/sources.mk agent/sources.mk host-broker/sources.mk
-include qemu-harness/launcher/sources.mk qemu-harness/probe/sources.mk test/bench/sources.mk
-include qemu-harness/wsl-rig/sources.mk
# The tests' folders mirror those of the sources; a test is found by its name.
UNIT_FILES := $(shell find test/unit -name 'test_*.c')
unit_source = $(filter %/test_$(strip $(1)).c,$(UNIT_FILES))
include $(sort $(wildcard test/unit/*.mk test/fuzz/*.mk))

BROKER_LIBS ?= -lcurl -lssl -lproxy -lz
UNIT_LIBS ?= -lcmocka -lcurl -lssl -lproxy -lz

# --- flags ----------------------------------------------------------------------------------------

# _GNU_SOURCE is defined as empty, so that a file that defines it itself agrees.
# The version is one number, in the file VERSION.
VERSION := $(shell cat VERSION)
CPPFLAGS_ALL := -I. -D_GNU_SOURCE= -DCODEV_VERSION_NUMBER=$(VERSION)
CFLAGS_ALL := -std=gnu11 -g -Wall -Wextra -Werror -ffunction-sections -fdata-sections -fno-common \
	-ffile-prefix-map=$(CURDIR)=.
HARDEN := -fstack-protector-strong -fstack-clash-protection
LDFLAGS_ALL := -Wl,--gc-sections -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack

# The host's own headers come first; the sysroot adds those of the libraries that are linked
# statically.
HOST_CC ?= gcc
HOST_CPPFLAGS := $(CPPFLAGS_ALL) -idirafter $(HOST_SYSROOT)/usr/include
ifneq ($(SAN),)
# What the compiler warns of from the flow of data is wrong often in instrumented code; the plain
# build has it on.
HOST_CFLAGS := $(CFLAGS_ALL) -O1 -fsanitize=address,undefined -fno-sanitize-recover=all \
	-fno-omit-frame-pointer \
	-Wno-format-truncation -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-stringop-truncation
HOST_LDFLAGS := -fsanitize=address,undefined
else
HOST_CFLAGS := $(CFLAGS_ALL) -O2 -fPIE $(HARDEN) -D_FORTIFY_SOURCE=2
HOST_LDFLAGS := $(LDFLAGS_ALL) -pie
endif
HOST_LIBDIR := $(HOST_SYSROOT)/usr/lib/$(HOST_ARCH)-linux-gnu
HOST_STATIC := $(HOST_LIBDIR)/libbearssl.a $(HOST_LIBDIR)/libmnl.a

# The guest: the compiler's own headers and libgcc, musl and the kernel's headers from the sysroot,
# nothing of glibc. Outlined atomics would ask glibc for the processor's features. Marks for
# indirect branches (CET, BTI) are left out: the kernel does not enforce them on a program whose C
# library has none, and they are 4 KiB.
comma := ,
GUEST_PREFIX := $(if $(filter $(ARCH),$(HOST_ARCH)),,$(ARCH)-linux-gnu-)
GUEST_CC ?= $(GUEST_PREFIX)gcc
GUEST_STRIP ?= $(GUEST_PREFIX)strip
MUSL := $(SYSROOT)/usr/lib/$(ARCH)-linux-musl
GUEST_CPPFLAGS = $(CPPFLAGS_ALL) -nostdinc -isystem $(SYSROOT)/usr/include/$(ARCH)-linux-musl \
	-isystem $(shell $(GUEST_CC) -print-file-name=include) -isystem $(SYSROOT)/usr/include \
	-isystem $(SYSROOT)/usr/include/$(ARCH)-linux-gnu
GUEST_CFLAGS := $(CFLAGS_ALL) -Oz -fPIE $(HARDEN) -fomit-frame-pointer \
	-fno-asynchronous-unwind-tables \
	-fno-unwind-tables \
	$(if $(filter aarch64,$(ARCH)),-mno-outline-atomics \
	-mbranch-protection=pac-ret,-fcf-protection=none)
# The workaround for an erratum of Cortex-A53 rewrites an address in place, which always reaches in
# programs this small: its other way, stubs, comes with up to 12 KiB of padding.
GUEST_LDFLAGS := $(LDFLAGS_ALL) -nostdlib -Wl,--build-id=none -Wl,-z,max-page-size=4096 \
	$(if $(filter aarch64,$(ARCH)),-Wl$(comma)--fix-cortex-a53-843419=adr)
GUEST_PIE := -static-pie $(MUSL)/rcrt1.o $(MUSL)/crti.o
# codev-init lies at a fixed address: it reads nothing that other processes or the network sent, and
# the relocations of its tables would be a tenth of it.
GUEST_WHOLE := -fno-pie -flto=auto $(if $(filter aarch64,$(ARCH)),-mcmodel=tiny)
GUEST_FIXED := $(GUEST_WHOLE) -static -no-pie $(MUSL)/crt1.o $(MUSL)/crti.o
GUEST_LIBS := -L$(SYSROOT)/usr/lib/$(ARCH)-linux-gnu -L$(MUSL) \
	-Wl,--start-group $(GUEST_OBJ)/libcommon.a -lbearssl -lmnl -lc -lgcc -Wl,--end-group $(MUSL)/crtn.o
GUEST_MAX_BYTES := 262144
codev-agent-reconnect_LDFLAGS := -Wl,--wrap=connection_open

FUZZ_CC ?= clang
FUZZ_CPPFLAGS := $(HOST_CPPFLAGS)
FUZZ_CFLAGS := $(CFLAGS_ALL) -O1 -fsanitize=fuzzer-no-link,address,undefined \
	-fno-sanitize-recover=all
FUZZ_LDFLAGS := -fsanitize=fuzzer,address,undefined

# --- what there is to build -----------------------------------------------------------------------

host_objects = $(patsubst %.c,$(HOST_OBJ)/%.o,$(filter %.c,$(1)))
guest_objects = $(patsubst %.c,$(GUEST_OBJ)/%.o,$(filter %.c,$(1)))
fuzz_objects = $(patsubst %.c,$(FUZZ_OBJ)/%.o,$(filter %.c,$(1)))

# The agent runs in the guest; natively it is built only for tests under sanitizers, which static
# musl cannot carry.
HOST_PROGRAMS := $(if $(BROKER_MAIN),$(BIN)/codev-broker) $(if \
	$(SANDBOX_MAIN),$(BIN)/codev-sandbox) \
	$(if $(VSOCK_FIXES_SRCS),$(BIN)/codev-vsock-fixes.so) \
	$(if $(SAN),$(if $(AGENT_MAIN),$(BIN)/codev-agent))
GUEST_PROGRAMS := $(if $(INIT_MAIN),$(GUEST)/codev-init) $(if $(AGENT_MAIN),$(GUEST)/codev-agent) \
	$(if $(PROBE_MAIN),$(GUEST)/probe $(GUEST)/codev-agent-reconnect) $(if \
	$(RIG_MAIN),$(GUEST)/rig-program)
UNIT_PROGRAMS := $(UNIT_TESTS:%=$(VARIANT)/unit/test_%)
FUZZ_PROGRAMS := $(FUZZ_TARGETS:%=$(B)/fuzz/fuzz_%)
KERNEL := $(if $(filter x86_64,$(ARCH)),$(GUEST)/vmlinux $(GUEST)/vmlinuz,$(GUEST)/Image)
BENCH_PROGRAMS := $(if $(BENCH_SRCS),$(BIN)/bench-load $(BIN)/bench-count.so $(GUEST)/bench-load \
	$(NFT_DRIVER))
IMAGE := $(GUEST)/rootfs.erofs $(GUEST)/rootfs.tar
TOOLS := $(B)/tools/.complete
RIG := $(if $(and $(RIG_MAIN),$(filter x86_64,$(ARCH))),\
	$(GUEST)/rig/initramfs $(BIN)/codev-rig $(BIN)/codev-sandbox-wsl)

.PHONY: all host guest programs kernel image tools rig packages unit system qemu test-qemu fuzz \
	fuzz-targets fresh test lint \
	format run picture soak boots bench bench-boot clean help FORCE

all: host guest tools
host: $(HOST_PROGRAMS)
programs: $(GUEST_PROGRAMS)
kernel: $(KERNEL)
guest: programs kernel $(IMAGE)
tools: $(TOOLS)
rig: $(RIG)
fuzz-targets: $(FUZZ_PROGRAMS)

help:
	@echo 'make                    host and guest programs, kernel and image (ARCH=x86_64|aarch64)'
	@echo 'make run                the tour: a sandbox that shows what it can and cannot do'
	@echo 'make test               unit, system (also sanitized), fuzz, qemu, the tour on both guests'
	@echo 'make unit|system|qemu   one layer of tests; SAN=1: under sanitizers, inside the guest too'
	@echo 'make fresh              build, lint, unit, system with rootfs/packages alone installed'
	@echo '                        (make test FRESH=1: too, unless that list has passed already)'
	@echo 'make fuzz               every fuzz target for FUZZ_SECONDS=$(FUZZ_SECONDS)'
	@echo 'make lint               rooms, columns, references, cppcheck, clang-tidy, clang-format ...'
	@echo 'make picture            draws the tour for the README: doc/tour.svg'
	@echo 'make image FLAVOR=debian   a guest with compilers, runtimes and a browser (rootfs-debian)'
	@echo 'make boots              $(BOOTS) boots in a row (BOOTS=)'
	@echo 'make soak               mixed load on the broker for SOAK_SECONDS=$(SOAK_SECONDS)'
	@echo 'make bench PART=NAME    measurements (boot relay vsock broker firewall scaling rewrite)'
	@echo 'make rig                the machine that behaves as WSL, and codev-sandbox-wsl, for tests'
	@echo 'make host|programs|kernel|image|tools|packages|clean'
	@echo 'V=1 shows commands, KERNEL_SRC=DIR takes another kernel source'

# --- what comes from outside ----------------------------------------------------------------------

# Those for tests, lint and measurements only when there is something of that kind to do.
PURPOSE := $(if $(filter bench%,$(MAKECMDGOALS)),bench,$(if $(filter \
	unit system qemu test-qemu fuzz% fresh test lint format soak boots,$(MAKECMDGOALS)),test,build))
packages:
	@rootfs/packages.sh $(PURPOSE)

$(B)/sysroot/%/.complete: rootfs/sysroot.sh rootfs/guest-packages | packages
	$(Q)rootfs/sysroot.sh sysroot $* $(@D)

$(TOOLS): rootfs/sysroot.sh rootfs/guest-packages | packages
	$(Q)rootfs/sysroot.sh tools $(HOST_ARCH) $(@D)

# --- objects --------------------------------------------------------------------------------------

# $(1) folder, $(2) HOST, GUEST or FUZZ, $(3) its sysroot; .flags holds the flags that the folder's
# objects have.
define object_rules
$(1)/.flags: FORCE
	@mkdir -p $$(@D)
	@echo '$$($(2)_CC) $$($(2)_CPPFLAGS) $$($(2)_CFLAGS) $$($(2)_LDFLAGS)' >$$@.new
	@cmp -s $$@.new $$@ && rm $$@.new || mv $$@.new $$@

$(1)/%.o: %.c $(1)/.flags $(3)/.complete | packages
	$$(call say,CC,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$($(2)_CC) $$($(2)_CPPFLAGS) $$($(2)_CFLAGS) -MMD -MP -c -o $$@ $$<
endef
$(eval $(call object_rules,$(HOST_OBJ),HOST,$(HOST_SYSROOT)))
$(eval $(call object_rules,$(GUEST_OBJ),GUEST,$(SYSROOT)))
$(eval $(call object_rules,$(FUZZ_OBJ),FUZZ,$(HOST_SYSROOT)))

# What every program may use; the linker takes what it needs.
$(HOST_OBJ)/libcommon.a: $(call host_objects,$(COMMON_SRCS))
$(GUEST_OBJ)/libcommon.a: $(call guest_objects,$(COMMON_SRCS) $(COMMON_GUEST_SRCS))
%/libcommon.a:
	$(call say,AR,$@)
	$(Q)rm -f $@; ar rcsD $@ $^

# --- programs -------------------------------------------------------------------------------------

# $(1) program, $(2) sources, $(3) libraries
define host_program
$(1): $(call host_objects,$(2)) $(HOST_OBJ)/libcommon.a
	$$(call say,LD,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(HOST_CC) $$(HOST_CFLAGS) $$(HOST_LDFLAGS) -o $$@ $$^ $$(HOST_STATIC) -Wl,--as-needed $(3)
endef
$(eval $(call host_program,$(BIN)/codev-broker,$(BROKER_SRCS) $(BROKER_MAIN),$(BROKER_LIBS)))
$(eval $(call host_program,$(BIN)/codev-sandbox,$(SANDBOX_SRCS) $(SANDBOX_MAIN),$(SANDBOX_LIBS)))
$(eval $(call host_program,$(BIN)/codev-sandbox-wsl,$(SANDBOX_SRCS) \
	$(SANDBOX_WSL_SRCS) $(SANDBOX_WSL_MAIN),$(SANDBOX_LIBS)))
$(eval $(call host_program,$(BIN)/codev-agent,$(AGENT_SRCS) $(AGENT_MAIN)))
$(eval $(call host_program,$(BIN)/bench-load,$(BENCH_SRCS) $(BENCH_HOST_SRCS),$(BENCH_LIBS)))

# Loaded into programs of Debian's: no sanitizers, whatever the variant.
$(BIN)/codev-vsock-fixes.so: $(VSOCK_FIXES_SRCS) | packages
$(BIN)/bench-count.so: $(BENCH_COUNT_SRCS) | packages
$(BIN)/codev-vsock-fixes.so $(BIN)/bench-count.so:
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(HOST_CC) $(HOST_CPPFLAGS) $(CFLAGS_ALL) -O2 -fPIC $(HARDEN) $(LDFLAGS_ALL) -shared -o $@ \
		$(filter %.c,$^)

# Linked with debug information beside the objects, stripped into build/guest, and refused when too
# large. What only the program at a fixed address uses: its tables of addresses need no relocation,
# and it is optimised as a whole (a tenth less).
$(GUEST_OBJ)/init/%.o $(GUEST_OBJ)/nft/%.o: GUEST_CFLAGS += $(GUEST_WHOLE)
# $(1) program's name, $(2) sources, $(3) GUEST_PIE or GUEST_FIXED
define guest_program
$(GUEST_OBJ)/$(1): $(call guest_objects,$(2)) $(GUEST_OBJ)/libcommon.a
	$$(call say,LD,$$@)
	$$(Q)$$(GUEST_CC) $$(GUEST_CFLAGS) $$(GUEST_LDFLAGS) $$($(1)_LDFLAGS) $$($(3)) -o $$@ $$(filter \
		%.o,$$^) $$(GUEST_LIBS)

$(GUEST)/$(1): $(GUEST_OBJ)/$(1)
	$$(call say,STRIP,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(GUEST_STRIP) -s -R .comment -o $$@ $$<
	@size=$$$$(stat -c %s $$@); [ $$$$size -le $(GUEST_MAX_BYTES) ] || \
		{ echo "error: $$@ has $$$$size bytes, more than $(GUEST_MAX_BYTES)" >&2; exit 1; }
endef
$(eval $(call guest_program,codev-init,$(INIT_SRCS) $(NFT_SRCS) $(INIT_MAIN),GUEST_FIXED))
$(eval $(call guest_program,codev-agent,$(AGENT_SRCS) $(AGENT_MAIN),GUEST_PIE))
$(eval $(call guest_program,probe,$(PROBE_SRCS) $(PROBE_MAIN),GUEST_PIE))
$(eval $(call guest_program,codev-agent-reconnect,$(AGENT_RECONNECT_SRCS) $(AGENT_MAIN),GUEST_PIE))
$(eval $(call guest_program,rig-program,$(RIG_SRCS) $(RIG_MAIN),GUEST_PIE))
$(eval $(call guest_program,bench-load,$(BENCH_SRCS) $(BENCH_GUEST_SRCS),GUEST_PIE))

# $(1) test: unit_NAME_SRCS, and unit_NAME_LDFLAGS and unit_NAME_LIBS where it has them
define unit_program
$(VARIANT)/unit/test_$(1): $(call host_objects,$(unit_$(1)_SRCS))
	$$(call say,LD,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(HOST_CC) $$(HOST_CFLAGS) $$(HOST_LDFLAGS) $(unit_$(1)_LDFLAGS) -o $$@ $$^ $$(HOST_STATIC) \
		-Wl,--as-needed $(UNIT_LIBS) $(unit_$(1)_LIBS)
endef
$(foreach test,$(UNIT_TESTS),$(eval $(call unit_program,$(test))))

define fuzz_program
$(B)/fuzz/fuzz_$(1): $(call fuzz_objects,$(fuzz_$(1)_SRCS))
	$$(call say,LD,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(FUZZ_CC) $$(FUZZ_LDFLAGS) -o $$@ $$^ $$(HOST_STATIC) -Wl,--as-needed $(fuzz_$(1)_LIBS)
endef
$(foreach target,$(FUZZ_TARGETS),$(eval $(call fuzz_program,$(target))))

# --- kernel and image -----------------------------------------------------------------------------

$(KERNEL) &: kconfig/kernel.sh kconfig/check.sh kconfig/base.config kconfig/$(ARCH).config \
	kconfig/required \
		kconfig/forbidden | packages
	$(Q)KERNEL_SRC='$(KERNEL_SRC)' kconfig/kernel.sh $(ARCH) $(GUEST)

IMAGE_INPUTS := $(shell find rootfs -type f)
$(IMAGE) &: $(IMAGE_INPUTS) $(filter-out %/probe %/codev-agent-reconnect \
	%/rig-program,$(GUEST_PROGRAMS)) $(SYSROOT)/.complete | packages
	$(call say,IMAGE,$(GUEST)/rootfs.erofs)
	$(Q)rootfs/image.py $(if $(and $(INIT_MAIN),$(AGENT_MAIN)),,--allow-missing) $(ARCH) $(SYSROOT) \
		$(GUEST)

# The rig that behaves as WSL does: Debian's kernel and its modules, our programs for what WSL and
# Windows do there.
$(B)/rig/.complete: rootfs/sysroot.sh rootfs/guest-packages | packages
	$(Q)rootfs/sysroot.sh rig x86_64 $(@D)

$(GUEST)/rig/initramfs: qemu-harness/wsl-rig/build.py qemu-harness/wsl-rig/start \
	qemu-harness/wsl-rig/import $(GUEST)/rig-program \
		$(B)/rig/.complete $(SYSROOT)/.complete
	$(call say,RIG,$@)
	$(Q)qemu-harness/wsl-rig/build.py $(B)/rig $(SYSROOT) $(GUEST)

$(BIN)/codev-rig: qemu-harness/wsl-rig/rig.py
	$(call say,COPY,$@)
	@mkdir -p $(@D)
	$(Q)install -m 755 $< $@

include rootfs/debian.mk
include test/harness/fail_stage.mk test/san/san.mk

# --- tests and measurements -----------------------------------------------------------------------

TEST_RUN := CODEV_BUILD=$(B) CODEV_ARCH=$(ARCH) FUZZ_SECONDS=$(FUZZ_SECONDS) \
	UNIT_TESTS='$(strip $(UNIT_TESTS))' \
	FUZZ_TARGETS='$(strip $(FUZZ_TARGETS))' FUZZ_LONG='$(strip $(FUZZ_LONG))' test/run $(if $(T),-k \
	'$(T)')

# T=NAME runs one test; only what it needs is built.
unit: $(if $(T),$(patsubst %,$(VARIANT)/unit/test_%,$(filter $(UNIT_TESTS),$(T))),$(UNIT_PROGRAMS))
	$(Q)$(TEST_RUN) $(if $(SAN),san-)unit
system: host programs tools
	$(Q)$(TEST_RUN) $(if $(SAN),san-)system
qemu: all rig $(DEBIAN_WANTED)
	$(Q)$(TEST_RUN) $(if $(SAN),san-)qemu
test-qemu: qemu
fuzz: $(if $(T),$(patsubst %,$(B)/fuzz/fuzz_%,$(filter $(FUZZ_TARGETS),$(T))),$(FUZZ_PROGRAMS))
	$(Q)$(TEST_RUN) fuzz
# Kernel and tools are in the cache folder then, from where test/fresh takes them.
fresh: kernel tools | packages
	$(Q)$(TEST_RUN) fresh
# FRESH=1: also test/fresh, unless the lists of packages have passed already.
test: all rig $(DEBIAN_TESTED) $(UNIT_PROGRAMS) $(FUZZ_PROGRAMS)
	$(Q)$(MAKE) --no-print-directory SAN=1 host sanitized-tests sanitized-guest
	$(Q)$(MAKE) --no-print-directory ARCH=$(OTHER_ARCH) guest
	$(Q)$(TEST_RUN) unit san-unit both-system $(if $(FRESH),fresh-if-changed) fuzz tour qemu \
		san-qemu-part

.PHONY: sanitized-tests
sanitized-tests: $(UNIT_PROGRAMS)

# Many boots in a row on a quiet machine: BOOTS of them, and the slowest may take twice the median.
boots: all
	$(Q)CODEV_BOOTS=$(BOOTS) CODEV_BOOTS_STRICT=1 $(TEST_RUN) -k test_boots.py qemu

ALL_SOURCES = $(COMMON_SRCS) $(COMMON_GUEST_SRCS) $(NFT_SRCS) $(INIT_SRCS) $(INIT_MAIN) \
	$(AGENT_SRCS) $(AGENT_MAIN) \
	$(BROKER_SRCS) $(BROKER_MAIN) $(SANDBOX_SRCS) $(SANDBOX_MAIN) $(VSOCK_FIXES_SRCS) $(SAN_SRCS) \
	$(SAN_FIRST_SRCS) $(PROBE_SRCS) $(PROBE_MAIN) $(AGENT_RECONNECT_SRCS) $(RIG_SRCS) $(RIG_MAIN) \
	$(SANDBOX_WSL_SRCS) $(SANDBOX_WSL_MAIN) \
	$(BENCH_SRCS) $(BENCH_HOST_SRCS) $(BENCH_GUEST_SRCS) $(BENCH_COUNT_SRCS) \
	$(foreach test,$(UNIT_TESTS),$(unit_$(test)_SRCS)) $(foreach \
	target,$(FUZZ_TARGETS),$(fuzz_$(target)_SRCS))

# T=CHECK runs one check.
lint: $(HOST_SYSROOT)/.complete | packages
	$(Q)LINT_SOURCES='$(sort $(ALL_SOURCES))' LINT_FLAGS='$(HOST_CPPFLAGS) -std=gnu11' test/lint $(T)
format: | packages
	$(Q)git ls-files '*.c' '*.h' | xargs clang-format -i

run: all
	$(Q)qemu-harness/tour/run --arch $(ARCH)
# The README's picture of the tour, drawn from a real run.
picture: all
	$(Q)qemu-harness/tour/picture doc/tour.svg --arch $(ARCH)
soak: host
	$(Q)CODEV_BIN=$(BIN) test/harness/soak_broker.py $(SOAK_SECONDS)
# PART=NAME measures one part.
bench: all $(BENCH_PROGRAMS)
	$(Q)CODEV_BUILD=$(B) test/bench/run $(PART)
bench-boot:
	$(Q)$(MAKE) --no-print-directory bench PART=boot

clean:
	rm -rf $(B)

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
