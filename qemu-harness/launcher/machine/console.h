/* The output of the guest's kernel: its last 64 KiB in memory, and in a file with --console.
 *
 * QEMU's serial line is one end of a socket pair. It is always read, so a guest that prints
 * without end blocks nothing and fills only the ring. The text is hostile and is shown escaped.
 */
#ifndef QEMU_HARNESS_LAUNCHER_MACHINE_CONSOLE_H
#define QEMU_HARNESS_LAUNCHER_MACHINE_CONSOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/os/failure.h"

#define CONSOLE_RING_SIZE (64 * 1024)
#define CONSOLE_FILE_MAX (64 * 1024 * 1024) /* bytes beyond it are not written */

struct console {
    int fd;       /* our end, or -1 */
    int guest_fd; /* QEMU's end, until it is started */
    int file;     /* --console, or -1 */
    size_t file_length;
    size_t total; /* bytes ever read; the ring holds the last of them */
    char ring[CONSOLE_RING_SIZE];
};

int console_open(struct console *console, const char *file, struct failure *why);
void console_close(struct console *console);

/* Reads all bytes that are ready. False at the end of file: QEMU has ended. */
bool console_read(struct console *console);

/* Shows the last `lines` lines, each behind `prefix`. */
void console_show_tail(const struct console *console, unsigned lines, FILE *out,
                       const char *prefix);

#endif
