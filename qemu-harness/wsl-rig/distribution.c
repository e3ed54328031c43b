/* Starts a distribution as WSL's /init does: a clone with PID, mount, IPC and UTS namespaces of its
 * own, and no others. Its PID 1 is this program, which also answers on /run/WSL/1_interop.
 *
 * The root becomes `/` by MS_MOVE and chroot, because pivot_root does not work from an initramfs.
 * It is a shared mount, as on WSL. All settings of /etc/wsl.conf that a sandbox turns off are
 * implemented here, so that a distribution without them gets what WSL gives: the Windows drives,
 * the path, resolv.conf and hosts.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "qemu-harness/wsl-rig/rig.h"

#define CONF_MAX 4096
#define GROUPS "/sys/fs/cgroup/wsl-user"
#define INTEROP RIG_WSL "/1_interop"

struct wsl_conf {
    bool automount, interop, resolv_conf, hosts, gpu;
};

struct conf_key {
    const char *section, *key;
    size_t offset;
};

static const struct conf_key conf_keys[] = {
    {"automount", "enabled", offsetof(struct wsl_conf, automount)},
    {"interop", "enabled", offsetof(struct wsl_conf, interop)},
    {"network", "generateResolvConf", offsetof(struct wsl_conf, resolv_conf)},
    {"network", "generateHosts", offsetof(struct wsl_conf, hosts)},
    {"gpu", "enabled", offsetof(struct wsl_conf, gpu)},
};

/* WSL's own defaults where the file or the key is absent. */
static struct wsl_conf read_conf(void)
{
    struct wsl_conf conf = {true, true, true, true, true};
    char text[CONF_MAX], section[64] = "", key[64], value[64];
    char *rest = NULL;
    if (io_read_file(AT_FDCWD, "etc/wsl.conf", 0, text, sizeof(text)) < 0)
        return conf;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (sscanf(line, " [%63[^]]]", section) == 1 ||
            sscanf(line, " %63[A-Za-z] = %63[a-z]", key, value) != 2)
            continue;
        for (size_t i = 0; i < ARRAY_LENGTH(conf_keys); i++)
            if (strcmp(section, conf_keys[i].section) == 0 && strcmp(key, conf_keys[i].key) == 0)
                *(bool *)((char *)&conf + conf_keys[i].offset) = strcmp(value, "true") == 0;
    }
    return conf;
}

/* Mounts at a path below the working directory, which is the distribution's root. */
static void attach(const char *source, const char *target, const char *type, unsigned long flags,
                   const char *data)
{
    (void)mkdir(target, 0755);
    if (mount(source, target, type, flags, data))
        rig_die(target);
}

static void attach_kernel_files(void)
{
    attach("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
    attach("sysfs", "sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
    attach("none", "dev", "devtmpfs", MS_NOSUID, "mode=755");
    attach("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "gid=5,mode=620,ptmxmode=000");
    attach("none", "run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755");
    attach("cgroup2", "sys/fs/cgroup", "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC, "nsdelegate");
    attach("binfmt_misc", "proc/sys/fs/binfmt_misc", "binfmt_misc", 0, NULL);
    (void)mkdir("dev/shm", 01777);
}

static void attach_wsl_files(const struct wsl_conf *conf)
{
    (void)mkdir("mnt", 0755);
    attach("/mnt/wsl", "mnt/wsl", NULL, MS_BIND | MS_REC, NULL);
    attach("none", "mnt/wslg", "tmpfs", 0, "mode=777");
    close(open("init", O_CREAT | O_CLOEXEC, 0755));
    attach("/init", "init", NULL, MS_BIND, NULL);
    attach("/init", "init", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL);
    if (symlink("/init", "usr/sbin/mount.drvfs") && errno != EEXIST)
        rig_die("mount.drvfs");
    if (!conf->gpu)
        return;
    (void)mkdir("usr/lib/wsl", 0755);
    attach("none", "usr/lib/wsl/lib", "tmpfs", 0, "mode=755");
}

static void write_network_files(const struct wsl_conf *conf)
{
    int flags = O_CREAT | O_TRUNC | O_NOFOLLOW;
    (void)mkdir("etc", 0755);
    if (conf->resolv_conf)
        (void)io_write_file(AT_FDCWD, "etc/resolv.conf", flags, 0644,
                            "nameserver 10.255.255.254\n");
    if (conf->hosts)
        (void)io_write_file(AT_FDCWD, "etc/hosts", flags, 0644,
                            "127.0.0.1 localhost\n::1 ip6-localhost\n");
}

/* C: to /mnt/c, when automount is on. */
static void attach_drives(void)
{
    char target[] = "/mnt/c";
    char *words[] = {"mount.drvfs", "C:\\", target, "-o", "noatime", NULL};
    if (access("/mnt", F_OK) || (mkdir(target, 0755) && errno != EEXIST))
        rig_die(target);
    pid_t child = fork();
    if (child == 0) {
        close(STDERR_FILENO); /* a Windows without the drive C: is not an error */
        _exit(rig_mount_drvfs(5, words));
    }
    waitpid(child, NULL, 0);
}

static int listen_interop(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = INTEROP};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)mkdir(RIG_WSL, 0755);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 16) ||
        chmod(INTEROP, 0777))
        rig_die(INTEROP);
    return fd;
}

static void answer_interop(int listener, const char *name, bool enabled, int record)
{
    char text[1024] = "", line[1200];
    struct timeval patience = {.tv_sec = 1};
    CLEANUP_FD int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    (void)!read(fd, text, sizeof(text) - 1);
    text[strcspn(text, "\r\n")] = '\0';
    int length = snprintf(line, sizeof(line), "interop %s %s\n", name, text);
    (void)io_write_full(record, line, (size_t)length);
    if (enabled)
        (void)io_write_full(fd, "ran\n", 4);
}

/* PID 1 of the distribution after its set-up: reaps children and answers at the interop socket. */
static void __attribute__((noreturn)) live(const char *name, bool interop, int record)
{
    struct pollfd wait = {.fd = listen_interop(), .events = POLLIN};
    for (;;) {
        (void)poll(&wait, 1, 100);
        if (wait.revents)
            answer_interop(wait.fd, name, interop, record);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    }
}

static void __attribute__((noreturn)) become_distribution(const char *name, int ready)
{
    char root[256];
    int record = open(RIG_LOG, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    snprintf(root, sizeof(root), RIG_DISTRIBUTIONS "/%s", name);
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || chdir(root))
        rig_die(root);
    struct wsl_conf conf = read_conf();
    attach_kernel_files();
    attach_wsl_files(&conf);
    write_network_files(&conf);
    (void)sethostname("WINDOWS", 7);
    if (mount(root, "/", NULL, MS_MOVE, NULL) || chroot(".") || chdir("/") ||
        mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL))
        rig_die("root");
    if (conf.automount)
        attach_drives();
    setsid();
    (void)!write(ready, "1", 1);
    close(ready);
    dup2(STDOUT_FILENO, STDERR_FILENO); /* to /dev/null: the set-up is complete */
    live(name, conf.interop, record);
}

static pid_t running(const char *name)
{
    char path[256], text[32];
    snprintf(path, sizeof(path), RIG_RUN "/%s.pid", name);
    if (io_read_file(AT_FDCWD, path, 0, text, sizeof(text)) <= 0)
        return 0;
    pid_t pid = (pid_t)strtol(text, NULL, 10);
    return pid > 0 && kill(pid, 0) == 0 ? pid : 0;
}

/* WSL: NEWIPC, NEWNS, NEWPID, NEWUTS; no NEWNET, no NEWUSER, no NEWCGROUP. */
static pid_t start(const char *name)
{
    char path[256], text[32], byte;
    int ready[2];
    if (pipe2(ready, O_CLOEXEC))
        rig_die("pipe");
    pid_t pid = (pid_t)syscall(
        SYS_clone, CLONE_NEWIPC | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        dup2(null, 0);
        dup2(null, 1); /* standard error stays open for errors of the set-up */
        become_distribution(name, ready[1]);
    }
    close(ready[1]);
    if (pid < 0 || read(ready[0], &byte, 1) != 1)
        rig_die(name);
    close(ready[0]);
    snprintf(path, sizeof(path), RIG_RUN "/%s.pid", name);
    snprintf(text, sizeof(text), "%d\n", (int)pid);
    if (io_write_file(AT_FDCWD, path, O_CREAT | O_TRUNC, 0644, text))
        rig_die(path);
    return pid;
}

/* The newest WSL puts each distribution into a cgroup of its own; a process that enters the
 * distribution is moved there too. */
static void join_group(const char *name)
{
    char line[2048], path[256];
    bool nested = io_read_file(AT_FDCWD, "/proc/cmdline", 0, line, sizeof(line)) > 0 &&
                  strstr(line, "rig.cgroup=nested");
    if (!nested)
        return;
    snprintf(path, sizeof(path), GROUPS "/distro-%s", name);
    if ((mkdir(GROUPS, 0755) && errno != EEXIST) || (mkdir(path, 0755) && errno != EEXIST))
        rig_die(path);
    snprintf(path, sizeof(path), GROUPS "/distro-%s/cgroup.procs", name);
    if (io_write_file(AT_FDCWD, path, 0, 0, "0"))
        rig_die(path);
}

static pid_t ensure(const char *name)
{
    CLEANUP_FD int lock = open(RIG_RUN "/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct flock whole = {.l_type = F_WRLCK};
    if (lock < 0 || fcntl(lock, F_SETLKW, &whole))
        rig_die("lock");
    pid_t pid = running(name);
    return pid ? pid : start(name);
}

void rig_enter(const char *distribution)
{
    static const char *const kinds[] = {"ipc", "uts", "pid", "mnt"};
    int namespaces[ARRAY_LENGTH(kinds)];
    char path[64];
    join_group(distribution);
    pid_t pid = ensure(distribution);
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
        snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, kinds[i]);
        namespaces[i] = open(path, O_RDONLY | O_CLOEXEC);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
        if (namespaces[i] < 0 || setns(namespaces[i], 0))
            rig_die(path);
}

int rig_distribution(int argc, char **argv)
{
    if (argc != 2)
        return 64;
    printf("%d\n", (int)ensure(argv[1]));
    return 0;
}
