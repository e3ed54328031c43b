/* Looks for network devices on both buses, in sysfs. This kernel has no drivers for them, so the
 * list of interfaces does not show whether the host gave the machine one. */
#include "init/machine/network_hardware.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"

#define VALUE_MAX 32

struct bus {
    const char *devices; /* below /sys */
    const char *file;    /* in a device's folder */
    const char *value;   /* its prefix for a network device */
    const char *what;
};

static const struct bus buses[] = {
    {"bus/pci/devices", "class", "0x02", "PCI device"},
    {"bus/virtio/devices", "device", "0x0001", "virtio device"},
};

static int device_check(int devices, const char *name, const struct bus *bus, struct failure *why)
{
    char path[300], value[VALUE_MAX];

    if (snprintf(path, sizeof(path), "%s/%s", name, bus->file) >= (int)sizeof(path))
        return failure_set(why, ENAMETOOLONG, "the %s %s", bus->what, name);
    ssize_t length = io_read_file(devices, path, 0, value, sizeof(value));
    if (length < 0)
        return failure_errno(why, (int)-length, "examine the %s %s", bus->what, name);
    if (strncmp(value, bus->value, strlen(bus->value)) == 0)
        return failure_set(why, EPERM,
                           "the machine has a network device (%s %s): a sandbox has none",
                           bus->what, name);
    return 0;
}

static int bus_check(int sys, const struct bus *bus, struct failure *why)
{
    int devices = openat(sys, bus->devices, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = devices < 0 ? NULL : fdopendir(devices);
    int result = 0;

    if (!list) {
        result = errno == ENOENT
                     ? 0
                     : failure_errno(why, errno, "list %s", bus->devices); /* no such bus */
        fd_close(&devices);
        return result;
    }
    for (struct dirent *entry; result == 0 && (entry = readdir(list));) {
        if (entry->d_name[0] != '.')
            result = device_check(devices, entry->d_name, bus, why);
    }
    closedir(list);
    return result;
}

int network_check_hardware(const char *sys, struct failure *why)
{
    CLEANUP_FD int folder = open(sys, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (folder < 0)
        return failure_errno(why, errno, "open %s", sys);
    for (size_t i = 0; i < ARRAY_LENGTH(buses); i++) {
        int result = bus_check(folder, &buses[i], why);
        if (result < 0)
            return result;
    }
    return 0;
}
