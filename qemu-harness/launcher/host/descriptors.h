/* Descriptors that are close-on-exec from the start, and the path of an inherited one. */
#ifndef QEMU_HARNESS_LAUNCHER_HOST_DESCRIPTORS_H
#define QEMU_HARNESS_LAUNCHER_HOST_DESCRIPTORS_H

#define DESCRIPTOR_PATH_SIZE 32

/* 0 or a negative errno. */
int descriptor_pipe(int *reader, int *writer);

/* Accepts a connection, which is then non-blocking. The descriptor or a negative errno. */
int descriptor_accept(int listener);

/* The path under which a process opens its own descriptor `fd` anew. */
void descriptor_path(int fd, char out[DESCRIPTOR_PATH_SIZE]);

#endif
