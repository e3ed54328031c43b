/* Network devices on both buses of a made-up /sys. */
#include "test/harness/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "init/machine/network_hardware.h"

static char sys_folder[] = "/tmp/codev-unit-sys-XXXXXX";

static void run(const char *command)
{
    char text[512];
    snprintf(text, sizeof(text), "cd %s && %s", sys_folder, command);
    assert_int_equal(system(text), 0); /* NOLINT(cert-env33-c): the words are ours */
}

static int make(void **state)
{
    (void)state;
    strcpy(sys_folder + sizeof(sys_folder) - 7, "XXXXXX");
    return mkdtemp(sys_folder) ? 0 : -1;
}

static int discard(void **state)
{
    (void)state;
    run("rm -r -- *; true");
    return rmdir(sys_folder);
}

static void no_bus_at_all(void **state)
{
    struct failure why;
    (void)state;
    assert_int_equal(network_check_hardware(sys_folder, &why), 0);
}

static void other_devices(void **state)
{
    struct failure why;
    (void)state;
    run("mkdir -p bus/pci/devices/0000:00:01.0 bus/virtio/devices/virtio0");
    run("echo 0x010000 >bus/pci/devices/0000:00:01.0/class");
    run("echo 0x0013 >bus/virtio/devices/virtio0/device");
    assert_int_equal(network_check_hardware(sys_folder, &why), 0);
}

static void a_pci_card(void **state)
{
    struct failure why;
    (void)state;
    other_devices(NULL);
    run("mkdir bus/pci/devices/0000:00:02.0; echo 0x028000 >bus/pci/devices/0000:00:02.0/class");
    assert_int_equal(network_check_hardware(sys_folder, &why), -EPERM);
    assert_non_null(strstr(why.text, "PCI device 0000:00:02.0"));
}

static void a_virtio_card(void **state)
{
    struct failure why;
    (void)state;
    other_devices(NULL);
    run("mkdir bus/virtio/devices/virtio9; echo 0x0001 >bus/virtio/devices/virtio9/device");
    assert_int_equal(network_check_hardware(sys_folder, &why), -EPERM);
    assert_non_null(strstr(why.text, "virtio device virtio9"));
}

static void what_cannot_be_read_is_no_yes(void **state)
{
    struct failure why;
    (void)state;
    run("mkdir -p bus/pci/devices/0000:00:01.0");
    assert_int_equal(network_check_hardware(sys_folder, &why), -ENOENT);
    assert_int_equal(network_check_hardware("/nowhere/sys", &why), -ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, discard)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(no_bus_at_all), TEST(other_devices), TEST(a_pci_card),
                                       TEST(a_virtio_card), TEST(what_cannot_be_read_is_no_yes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
