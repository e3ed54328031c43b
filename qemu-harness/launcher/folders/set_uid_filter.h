/* A system call filter for processes that serve the user's folders: they cannot make a file
 * set-uid.
 *
 * The guest writes the files in the folders. A set-uid program there would run with the user's
 * rights, whichever user of this host starts it. Nothing in a sandbox needs one: inside, the
 * mounts are nosuid.
 */
#ifndef QEMU_HARNESS_LAUNCHER_FOLDERS_SET_UID_FILTER_H
#define QEMU_HARNESS_LAUNCHER_FOLDERS_SET_UID_FILTER_H

/* For this process and all it executes; no_new_privs must be set. 0 or a negative errno. */
int set_uid_filter_load(void);

#endif
