/* Looks for KVM in /proc/cpuinfo and /dev. */
#include "qemu-harness/launcher/machine/accelerator_internal.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"

#define CPUINFO_SIZE (64 * 1024) /* the first processors' lines suffice */

static bool line_has_word(const char *line, size_t length, const char *word)
{
    size_t word_length = strlen(word);
    for (size_t i = 0; i + word_length <= length; i++) {
        bool starts = i > 0 && (line[i - 1] == ' ' || line[i - 1] == '\t');
        bool ends = i + word_length == length || line[i + word_length] == ' ';
        if (starts && ends && memcmp(line + i, word, word_length) == 0)
            return true;
    }
    return false;
}

bool accelerator_cpu_has_virtualization(const char *cpuinfo, size_t length)
{
    while (length > 0) {
        const char *newline = memchr(cpuinfo, '\n', length);
        size_t line = newline ? (size_t)(newline - cpuinfo) : length;
        if (line > 5 && memcmp(cpuinfo, "flags", 5) == 0 &&
            (line_has_word(cpuinfo, line, "vmx") || line_has_word(cpuinfo, line, "svm")))
            return true;
        line += newline ? 1 : 0;
        cpuinfo += line;
        length -= line;
    }
    return false;
}

const char *accelerator_host_arch(void)
{
    static struct utsname name;
    return uname(&name) ? "x86_64" : name.machine;
}

void accelerator_choose(struct accelerator *accelerator, const char *guest_arch)
{
    static char cpuinfo[CPUINFO_SIZE];
    *accelerator = (struct accelerator){.kvm = false, .group = (gid_t)-1};
    if (strcmp(accelerator_host_arch(), guest_arch) != 0)
        return;
    if (strcmp(guest_arch, "x86_64") == 0) {
        CLEANUP_FD int file = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
        ssize_t length = file < 0 ? -1 : io_read_full(file, cpuinfo, sizeof(cpuinfo));
        if (length <= 0 || !accelerator_cpu_has_virtualization(cpuinfo, (size_t)length))
            return;
    }
    CLEANUP_FD int device = open("/dev/kvm", O_RDWR | O_CLOEXEC);
    struct stat status;
    if (device < 0 || fstat(device, &status))
        return;
    accelerator->kvm = true;
    if (status.st_gid != 0 && (status.st_mode & 060) == 060)
        accelerator->group = status.st_gid;
}
