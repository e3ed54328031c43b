/* See qemu.h. The fixed arguments are const tables; those that hold a number are formatted into one
 * arena. */
#include "qemu-harness/launcher/machine/qemu.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "qemu-harness/launcher/host/programs.h"
#include "qemu-harness/launcher/machine/guest_memory.h"

#define ARGUMENTS_MAX (64 + 8 * OPTION_REPEAT_MAX)
#define CPUS_KVM 2L
#define CPUS_TCG                                                                                   \
    1L /* emulated processors interrupt each other dearly: fork(2) costs seven times as much on two */
#define ARENA_SIZE (32 * 1024)
#define INHERITED_MAX (8 + 2 * OPTION_REPEAT_MAX)

/* The root bus has 32 slots; the machine, disk, random numbers, vsock and what --qemu-arg adds take some. Up to
 * MOUNTS_IN_SLOTS folders have one each, wherever QEMU finds it. More share: eight functions a slot, from
 * MOUNT_SLOT_FIRST on. No bridge is needed for that, and 64 folders are slots 16 to 23. */
#define MOUNTS_IN_SLOTS 16
#define MOUNT_SLOT_FIRST 16
#define SLOT_FUNCTIONS 8
#define PLACE_SIZE 48
#define CLOCK_SIZE 32
_Static_assert(MOUNT_SLOT_FIRST + (OPTION_REPEAT_MAX + SLOT_FUNCTIONS - 1) / SLOT_FUNCTIONS < 31,
               "31 is the machine's own");

struct machine {
    const char *arch;
    const char *program; /* found in PATH */
    const char *kernel;  /* relative to our executable */
    const char *image;
    const char *type;    /* -machine */
    const char *console; /* with what else only this machine's kernel is told */
    const char *emulated_cpu;
    /* emulated, it reads the time stamp counter of a host of its own kind */
    bool reads_our_counter;
};

/* q35 without what costs time to probe; the kernel enters by PVH. It does not look whether timer interrupts arrive
 * within a few ticks: on a busy host an emulated machine's do not, and the kernel would panic ("IO-APIC + timer
 * doesn't work"; under KVM it does not look either). An emulated aarch64 signs return addresses by a quick function
 * of QEMU's own instead of QARMA5: kernel and programs do that at every call. */
static const struct machine machines[] = {
    {"x86_64", "qemu-system-x86_64", "../guest/x86_64/vmlinux", "../guest/x86_64/rootfs.erofs",
     "q35,vmport=off,smbus=off,sata=off,usb=off,graphics=off,hpet=off", "ttyS0 no_timer_check",
     "max", true},
    {"aarch64", "qemu-system-aarch64", "../guest/aarch64/Image", "../guest/aarch64/rootfs.erofs",
     "virt,gic-version=max,usb=off", "ttyAMA0", "max,pauth-impdef=on", false},
};

/* `--arch`, else what the kernel's name says, else this host's. */
static const struct machine *machine_choose(const struct options *options, struct failure *why)
{
    const char *arch = options->arch;
    const char *name = options->kernel ? strrchr(options->kernel, '/') : NULL;
    name = name ? name + 1 : options->kernel;
    if (!arch && name && strncmp(name, "Image", 5) == 0)
        arch = "aarch64";
    if (!arch && name && strncmp(name, "vmlinu", 6) == 0)
        arch = "x86_64";
    if (!arch)
        arch = accelerator_host_arch();
    for (size_t i = 0; i < ARRAY_LENGTH(machines); i++)
        if (strcmp(machines[i].arch, arch) == 0)
            return &machines[i];
    failure_set(why, EINVAL, "no guest for %s: --arch x86_64 or aarch64", arch);
    return NULL;
}

static int open_file(char path[PATH_MAX], const char *chosen, const char *beside, const char *what,
                     struct failure *why)
{
    struct stat status;
    if (chosen ? snprintf(path, PATH_MAX, "%s", chosen) >= PATH_MAX : program_beside(path, beside))
        return failure_set(why, ENAMETOOLONG, "%s: path too long", what);
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status))
        return failure_errno(why, errno, "%s %s", what, path);
    if (!S_ISREG(status.st_mode))
        return failure_set(why, EINVAL, "%s %s is no regular file", what, path);
    return fd_steal(&fd);
}

int qemu_open(struct qemu *qemu, const struct options *options, struct failure *why)
{
    qemu->kernel = qemu->image = qemu->memory = -1;
    qemu->opened = tick_sample_take();
    qemu->machine = machine_choose(options, why);
    if (!qemu->machine)
        return -EINVAL;
    int result = program_find(qemu->program, options->qemu, NULL, qemu->machine->program, why);
    if (result)
        return result;
    qemu->kernel =
        open_file(qemu->kernel_path, options->kernel, qemu->machine->kernel, "kernel", why);
    if (qemu->kernel < 0)
        return qemu->kernel;
    qemu->image = open_file(qemu->image_path, options->image, qemu->machine->image, "image", why);
    return qemu->image < 0 ? qemu->image : 0;
}

void qemu_close(struct qemu *qemu)
{
    fd_close(&qemu->kernel);
    fd_close(&qemu->image);
    fd_close(&qemu->memory);
}

const char *qemu_arch(const struct qemu *qemu)
{
    return qemu->machine->arch;
}

/* The growing command line. Sticky: what does not fit is told once, at the end. */
struct arguments {
    const char *argv[ARGUMENTS_MAX + 1];
    unsigned count;
    char arena[ARENA_SIZE];
    size_t used;
    int keep[INHERITED_MAX];
    unsigned keep_count;
    bool overflow;
};

static void add(struct arguments *arguments, const char *option, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* `option` (NULL: none), then the formatted text (NULL: none). */
static void add(struct arguments *arguments, const char *option, const char *format, ...)
{
    va_list values;
    size_t room = ARENA_SIZE - arguments->used;
    if (arguments->count + 2 > ARGUMENTS_MAX) {
        arguments->overflow = true;
        return;
    }
    if (option)
        arguments->argv[arguments->count++] = option;
    if (!format)
        return;
    va_start(values, format);
    int length = vsnprintf(arguments->arena + arguments->used, room, format, values);
    va_end(values);
    if (length < 0 || (size_t)length >= room) {
        arguments->overflow = true;
        return;
    }
    arguments->argv[arguments->count++] = arguments->arena + arguments->used;
    arguments->used += (size_t)length + 1;
}

static int inherit(struct arguments *arguments, int fd)
{
    if (arguments->keep_count == INHERITED_MAX)
        arguments->overflow = true;
    else
        arguments->keep[arguments->keep_count++] = fd;
    return fd;
}

/* What the kernel is told of its clock, where it would find it out badly: see tick_rate.h. With -icount QEMU makes up a counter. */
static void tell_clock(char text[CLOCK_SIZE], const struct qemu *qemu,
                       const struct qemu_parts *parts)
{
    struct tick_sample now = tick_sample_take();
    uint32_t khz = tick_rate_khz(&qemu->opened, &now);
    bool ours = qemu->machine->reads_our_counter && !parts->accelerator->kvm;
    const struct option_list *more = &parts->options->qemu_arguments;
    for (unsigned i = 0; i < more->count; i++)
        ours = ours && strcmp(more->items[i], "-icount") != 0;
    text[0] = '\0';
    if (ours && khz)
        snprintf(text, CLOCK_SIZE, " tsc_early_khz=%u", khz);
}

static void add_base(struct arguments *arguments, const struct qemu *qemu,
                     const struct qemu_parts *parts)
{
    const struct options *options = parts->options;
    char clock[CLOCK_SIZE];
    tell_clock(clock, qemu, parts);
    add(arguments, qemu->program, NULL);
    add(arguments, "-nodefaults", NULL);
    add(arguments, "-no-user-config", NULL);
    add(arguments, "-no-reboot", NULL);
    add(arguments, "-display", "none");
    add(arguments, "-sandbox",
        "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny");
    add(arguments, "-machine", "%s,memory-backend=memory", qemu->machine->type);
    add(arguments, "-accel", "%s", parts->accelerator->kvm ? "kvm" : "tcg");
    add(arguments, "-cpu", "%s", parts->accelerator->kvm ? "max" : qemu->machine->emulated_cpu);
    add(arguments, "-smp", "%ld",
        options->cpus > 0         ? options->cpus
        : parts->accelerator->kvm ? CPUS_KVM
                                  : CPUS_TCG);
    add(arguments, "-m", "%ldM", options->memory_mib);
    add(arguments, "-object",
        "memory-backend-file,id=memory,size=%ldM,share=on,mem-path=/proc/self/fd/%d",
        options->memory_mib, inherit(arguments, qemu->memory));
    add(arguments, "-kernel", "/proc/self/fd/%d", inherit(arguments, qemu->kernel));
    add(arguments, "-append",
        "console=%s quiet panic=-1 root=/dev/vda rootfstype=erofs ro init=/sbin/codev-init "
        "codev.control=vsock:%u%s",
        qemu->machine->console, parts->control_port, clock);
    add(arguments, "-drive", "if=none,id=root,format=raw,readonly=on,file=/proc/self/fd/%d",
        inherit(arguments, qemu->image));
    add(arguments, "-device", "virtio-blk-pci,drive=root");
    add(arguments, "-device", "virtio-rng-pci");
    add(arguments, "-chardev", "socket,id=console,fd=%d", inherit(arguments, parts->console));
    add(arguments, "-serial", "chardev:console");
}

static void add_vsock(struct arguments *arguments, const struct vsock *vsock)
{
    int fd = inherit(arguments, vsock->device);
    switch (vsock->kind) {
    case VSOCK_KERNEL:
        add(arguments, "-device", "vhost-vsock-pci,guest-cid=%u,vhostfd=%d", vsock->guest_cid, fd);
        break;
    case VSOCK_HYBRID:
        add(arguments, "-chardev", "socket,id=vsock,fd=%d", fd);
        add(arguments, "-device", "vhost-user-vsock-pci,chardev=vsock");
        break;
    case VSOCK_NONE:
    case VSOCK_KIND_COUNT:
        break;
    }
}

/* Where a folder's device is on the bus, as further properties of it; "": where QEMU likes. */
static void place_mount(char place[PLACE_SIZE], unsigned index, unsigned count)
{
    place[0] = '\0';
    if (count > MOUNTS_IN_SLOTS)
        snprintf(place, PLACE_SIZE, ",multifunction=on,addr=%x.%x",
                 MOUNT_SLOT_FIRST + index / SLOT_FUNCTIONS, index % SLOT_FUNCTIONS);
}

static void add_mounts(struct arguments *arguments, const struct qemu_parts *parts)
{
    for (unsigned i = 0; i < parts->mounts->count; i++) {
        const struct mount *mount = &parts->mounts->entries[i];
        char place[PLACE_SIZE];
        place_mount(place, i, parts->mounts->count);
        if (parts->file_server->kind == FILE_SERVER_VIRTIOFS) {
            add(arguments, "-chardev", "socket,id=%s,fd=%d", mount->tag,
                inherit(arguments, parts->file_server->connections[i]));
            add(arguments, "-device", "vhost-user-fs-pci,chardev=%s,tag=%s%s", mount->tag,
                mount->tag, place);
            continue;
        }
        add(arguments, "-fsdev",
            "local,id=%s,path=/proc/self/fd/%d,security_model=none,multidevs=remap%s", mount->tag,
            inherit(arguments, mount->fd), mount->spec.readonly ? ",readonly=on" : "");
        add(arguments, "-device", "virtio-9p-pci,fsdev=%s,mount_tag=%s%s", mount->tag, mount->tag,
            place);
    }
}

static int qemu_prepare(void *context, struct failure *why)
{
    return identity_take(context, why);
}

int qemu_start(struct qemu *qemu, const struct qemu_parts *parts, struct process_table *processes,
               struct failure *why)
{
    static struct arguments arguments;
    const struct options *options = parts->options;
    qemu->memory = guest_memory_make(options->memory_mib, parts->account, why);
    if (qemu->memory < 0)
        return qemu->memory;
    add_base(&arguments, qemu, parts);
    add_vsock(&arguments, parts->vsock);
    add_mounts(&arguments, parts);
    for (unsigned i = 0; i < options->qemu_arguments.count; i++)
        add(&arguments, options->qemu_arguments.items[i], NULL);
    if (arguments.overflow)
        return failure_set(why, E2BIG, "too many mounts or --qemu-arg");
    struct identity identity = {.account = *parts->account,
                                .extra_group = parts->accelerator->group};
    struct spawn spawn = {.argv = arguments.argv,
                          .stdin_fd = -1,
                          .stdout_fd = parts->diagnostics,
                          .stderr_fd = parts->diagnostics,
                          .keep = arguments.keep,
                          .keep_count = arguments.keep_count,
                          .death_signal = SIGKILL,
                          .prepare = qemu_prepare,
                          .context = &identity};
    int result = process_spawn(processes, PROCESS_QEMU, &spawn, why);
    if (result < 0)
        return result;
    return guest_memory_link(parts->folder, processes->entries[result].pid, qemu->memory, why);
}
