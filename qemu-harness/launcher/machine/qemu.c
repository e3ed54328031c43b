/* The virtual machine: its files, its arguments, its start.
 *
 * No path of the user's is on QEMU's command line: kernel, image, folders and memory are inherited
 * descriptors. So any name works, and QEMU's account needs no access to the path.
 * Fixed arguments are const tables; arguments that hold a number are formatted into one arena.
 */
#include "qemu-harness/launcher/machine/machine.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "qemu-harness/launcher/folders/file_server.h"
#include "qemu-harness/launcher/host/descriptors.h"
#include "qemu-harness/launcher/host/programs.h"
#include "qemu-harness/launcher/machine/accelerator_internal.h"
#include "qemu-harness/launcher/machine/guest_memory_internal.h"
#include "qemu-harness/launcher/machine/tick_rate_internal.h"
#include "qemu-harness/launcher/machine/vsock_internal.h"

#define ARGUMENTS_MAX (64 + 8 * OPTION_REPEAT_MAX)
#define CPUS_KVM 2L
#define CPUS_TCG 1L /* on two emulated processors fork(2) takes seven times as long */
#define HELLO_SECONDS_TCG 60
#define HELLO_SECONDS_KVM 20
#define ARENA_SIZE (32 * 1024)
#define INHERITED_MAX (8 + 2 * OPTION_REPEAT_MAX)

/* The root bus has 32 slots. The machine, disk, random numbers, vsock and the devices of
 * --qemu-arg take some. Up to MOUNTS_IN_SLOTS folders have a slot each, which QEMU chooses. More
 * folders share slots from MOUNT_SLOT_FIRST on, eight functions in each: 64 folders take slots 16
 * to 23, and no bridge is needed. */
#define MOUNTS_IN_SLOTS 16
#define MOUNT_SLOT_FIRST 16
#define SLOT_FUNCTIONS 8
#define PLACE_SIZE 48
#define CLOCK_SIZE 32
static_assert(MOUNT_SLOT_FIRST + (OPTION_REPEAT_MAX + SLOT_FUNCTIONS - 1) / SLOT_FUNCTIONS < 31,
              "slot 31 is the machine's own");

struct architecture {
    const char *name;
    const char *program; /* found in PATH */
    const char *kernel;  /* relative to our executable */
    const char *image;
    const char *type;    /* -machine */
    const char *console; /* console=, and further words for this kernel only */
    const char *emulated_cpu;
    bool reads_host_counter; /* emulated, it reads the host's own time stamp counter */
};

/* q35 leaves out what takes time to probe; its kernel is entered by PVH. `no_timer_check`: on a
 * busy host the timer interrupts of an emulated machine come late, and the kernel would panic
 * ("IO-APIC + timer doesn't work"); under KVM the kernel skips this check by itself.
 * `pauth-impdef`: an emulated aarch64 signs return addresses at every call, and QEMU's own
 * function for it is much faster than QARMA5. */
static const struct architecture architectures[] = {
    {"x86_64", "qemu-system-x86_64", "../guest/x86_64/vmlinux", "../guest/x86_64/rootfs.erofs",
     "q35,vmport=off,smbus=off,sata=off,usb=off,graphics=off,hpet=off", "ttyS0 no_timer_check",
     "max", true},
    {"aarch64", "qemu-system-aarch64", "../guest/aarch64/Image", "../guest/aarch64/rootfs.erofs",
     "virt,gic-version=max,usb=off", "ttyAMA0", "max,pauth-impdef=on", false},
};

static struct {
    const struct architecture *architecture;
    struct accelerator accelerator;
    struct file_server file_server;
    struct vsock vsock;
    char program[PATH_MAX];
    char kernel_path[PATH_MAX], image_path[PATH_MAX];
    int kernel, image, memory;
    struct tick_sample opened; /* when qemu_open ran */
} qemu = {.kernel = -1, .image = -1, .memory = -1, .vsock.device = -1};

/* `--arch`, else what the kernel's file name says, else this host's. */
static const struct architecture *choose_architecture(const struct options *options,
                                                      struct failure *why)
{
    const char *arch = options->arch;
    const char *file = options->kernel ? strrchr(options->kernel, '/') : NULL;
    file = file ? file + 1 : options->kernel;
    if (!arch && file && strncmp(file, "Image", 5) == 0)
        arch = "aarch64";
    if (!arch && file && strncmp(file, "vmlinu", 6) == 0)
        arch = "x86_64";
    if (!arch)
        arch = accelerator_host_arch();
    for (size_t i = 0; i < ARRAY_LENGTH(architectures); i++)
        if (strcmp(architectures[i].name, arch) == 0)
            return &architectures[i];
    failure_set(why, EINVAL, "no guest for %s: use --arch x86_64 or --arch aarch64", arch);
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

static int qemu_open(const struct machine_parts *parts, struct found_paths *found,
                     struct failure *why)
{
    const struct options *options = parts->options;
    qemu.opened = tick_sample_take();
    qemu.architecture = choose_architecture(options, why);
    if (!qemu.architecture)
        return -EINVAL;
    int result = program_find(qemu.program, options->qemu, NULL, qemu.architecture->program, why);
    if (result)
        return result;
    qemu.kernel =
        open_file(qemu.kernel_path, options->kernel, qemu.architecture->kernel, "kernel", why);
    if (qemu.kernel < 0)
        return qemu.kernel;
    qemu.image = open_file(qemu.image_path, options->image, qemu.architecture->image, "image", why);
    if (qemu.image < 0)
        return qemu.image;
    found->machine_program = qemu.program;
    found->kernel = qemu.kernel_path;
    found->image = qemu.image_path;
    accelerator_choose(&qemu.accelerator, qemu.architecture->name);
    return 0;
}

static void qemu_close(void)
{
    fd_close(&qemu.kernel);
    fd_close(&qemu.image);
    fd_close(&qemu.memory);
    fd_close(&qemu.vsock.device);
}

static int qemu_connect(const struct machine_parts *parts, struct guest_link *link,
                        struct failure *why)
{
    int result = vsock_start(&qemu.vsock, parts->options, parts->folder, parts->processes, why);
    if (result)
        return result;
    vsock_describe(&qemu.vsock, link);
    link->hello_seconds = qemu.accelerator.kvm ? HELLO_SECONDS_KVM : HELLO_SECONDS_TCG;
    return 0;
}

static int qemu_serve_folders(const struct machine_parts *parts, struct failure *why)
{
    int result = file_server_choose(&qemu.file_server, parts->options, why);
    if (result)
        return result;
    for (unsigned i = 0; i < parts->mounts->count; i++) {
        struct mount *mount = &parts->mounts->entries[i];
        mount->type = file_server_choice_names[qemu.file_server.kind];
        snprintf(mount->source, sizeof(mount->source), "m%u", i);
    }
    return file_server_start(&qemu.file_server, parts->mounts, parts->account, parts->folder,
                             parts->processes, parts->diagnostics, why);
}

static int qemu_accept(int listener)
{
    return vsock_accept(&qemu.vsock, listener);
}

/* The growing command line. `overflow` is sticky and checked once, at the end. */
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

/* The path of an inherited descriptor, valid until the next call. */
static const char *inherit_path(struct arguments *arguments, int fd)
{
    static char path[DESCRIPTOR_PATH_SIZE];
    descriptor_path(inherit(arguments, fd), path);
    return path;
}

/* Tells the kernel the rate of the time stamp counter (tick_rate_internal.h). With -icount the
 * guest has a counter of QEMU's instead of the host's. */
static void tell_clock(char text[CLOCK_SIZE], const struct options *options)
{
    struct tick_sample now = tick_sample_take();
    uint32_t khz = tick_rate_khz(&qemu.opened, &now);
    bool host = qemu.architecture->reads_host_counter && !qemu.accelerator.kvm;
    const struct option_list *more = &options->qemu_arguments;
    for (unsigned i = 0; i < more->count; i++)
        host = host && strcmp(more->items[i], "-icount") != 0;
    text[0] = '\0';
    if (host && khz)
        snprintf(text, CLOCK_SIZE, " tsc_early_khz=%u", khz);
}

static void add_base(struct arguments *arguments, const struct machine_parts *parts,
                     uint32_t control_port)
{
    const struct options *options = parts->options;
    bool kvm = qemu.accelerator.kvm;
    char clock[CLOCK_SIZE];
    tell_clock(clock, options);
    add(arguments, qemu.program, NULL);
    add(arguments, "-nodefaults", NULL);
    add(arguments, "-no-user-config", NULL);
    add(arguments, "-no-reboot", NULL);
    add(arguments, "-display", "none");
    add(arguments, "-sandbox",
        "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny");
    add(arguments, "-machine", "%s,memory-backend=memory", qemu.architecture->type);
    add(arguments, "-accel", "%s", kvm ? "kvm" : "tcg");
    add(arguments, "-cpu", "%s", kvm ? "max" : qemu.architecture->emulated_cpu);
    add(arguments, "-smp", "%ld", options->cpus > 0 ? options->cpus : kvm ? CPUS_KVM : CPUS_TCG);
    add(arguments, "-m", "%ldM", options->memory_mib);
    add(arguments, "-object", "memory-backend-file,id=memory,size=%ldM,share=on,mem-path=%s",
        options->memory_mib, inherit_path(arguments, qemu.memory));
    add(arguments, "-kernel", "%s", inherit_path(arguments, qemu.kernel));
    add(arguments, "-append",
        "console=%s quiet panic=-1 root=/dev/vda rootfstype=erofs ro init=/sbin/codev-init "
        "codev.control=vsock:%u%s",
        qemu.architecture->console, control_port, clock);
    add(arguments, "-drive", "if=none,id=root,format=raw,readonly=on,file=%s",
        inherit_path(arguments, qemu.image));
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
    case VSOCK_KIND_COUNT:
        break;
    }
}

/* Further properties of a folder's device that say where it is on the bus; "": QEMU chooses. */
static void place_mount(char place[PLACE_SIZE], unsigned index, unsigned count)
{
    place[0] = '\0';
    if (count > MOUNTS_IN_SLOTS)
        snprintf(place, PLACE_SIZE, ",multifunction=on,addr=%x.%x",
                 MOUNT_SLOT_FIRST + index / SLOT_FUNCTIONS, index % SLOT_FUNCTIONS);
}

static void add_mounts(struct arguments *arguments, const struct mount_table *mounts)
{
    for (unsigned i = 0; i < mounts->count; i++) {
        const struct mount *mount = &mounts->entries[i];
        const char *tag = mount->source;
        char place[PLACE_SIZE];
        place_mount(place, i, mounts->count);
        if (mount->server >= 0) {
            add(arguments, "-chardev", "socket,id=%s,fd=%d", tag,
                inherit(arguments, mount->server));
            add(arguments, "-device", "vhost-user-fs-pci,chardev=%s,tag=%s%s", tag, tag, place);
            continue;
        }
        add(arguments, "-fsdev", "local,id=%s,path=%s,security_model=none,multidevs=remap%s", tag,
            inherit_path(arguments, mount->fd), mount->spec.readonly ? ",readonly=on" : "");
        add(arguments, "-device", "virtio-9p-pci,fsdev=%s,mount_tag=%s%s", tag, tag, place);
    }
}

static int qemu_prepare(void *context, struct failure *why)
{
    return identity_take(context, why);
}

static int qemu_spawn(const struct machine_parts *parts, const struct arguments *arguments,
                      struct failure *why)
{
    struct identity identity = {.account = *parts->account, .extra_group = qemu.accelerator.group};
    struct spawn spawn = {.name = "qemu",
                          .argv = arguments->argv,
                          .stdin_fd = -1,
                          .stdout_fd = parts->diagnostics,
                          .stderr_fd = parts->diagnostics,
                          .keep = arguments->keep,
                          .keep_count = arguments->keep_count,
                          .death_signal = SIGKILL,
                          .prepare = qemu_prepare,
                          .context = &identity};
    int result = process_spawn(parts->processes, PROCESS_GUEST, &spawn, why);
    if (result < 0)
        return result;
    return guest_memory_link(parts->folder, parts->processes->entries[result].pid, qemu.memory,
                             why);
}

/* RUN/memory then leads to the guest's memory. */
static int qemu_start(const struct machine_parts *parts, struct control_ends *control,
                      struct failure *why)
{
    static struct arguments arguments;
    const struct options *options = parts->options;
    uint32_t control_port;
    control->listener = vsock_listen_control(&qemu.vsock, &control_port, why);
    if (control->listener < 0)
        return control->listener;
    qemu.memory = guest_memory_make(options->memory_mib, parts->account, why);
    if (qemu.memory < 0)
        return qemu.memory;
    add_base(&arguments, parts, control_port);
    add_vsock(&arguments, &qemu.vsock);
    add_mounts(&arguments, parts->mounts);
    for (unsigned i = 0; i < options->qemu_arguments.count; i++)
        add(&arguments, options->qemu_arguments.items[i], NULL);
    if (arguments.overflow)
        return failure_set(why, E2BIG, "too many mounts or --qemu-arg");
    int result = qemu_spawn(parts, &arguments, why);
    /* QEMU has inherited them; its copies must be the last, so that their end is QEMU's */
    fd_close(&qemu.vsock.device);
    for (unsigned i = 0; i < parts->mounts->count; i++)
        fd_close(&parts->mounts->entries[i].server);
    return result;
}

const struct machine qemu_machine = {
    .open = qemu_open,
    .connect = qemu_connect,
    .serve_folders = qemu_serve_folders,
    .start = qemu_start,
    .accept = qemu_accept,
    .close = qemu_close,
};
