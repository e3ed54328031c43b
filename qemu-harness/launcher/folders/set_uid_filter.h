/* A seccomp filter for those that serve the user's folders: no file of theirs becomes set-uid.
 *
 * A set-uid program in a folder of the user's runs with the user's rights, whoever of this host starts it, and what
 * is in the folders is the guest's to write. Nothing that works in a sandbox needs one: inside, the mounts are
 * nosuid.
 */
#ifndef QEMU_HARNESS_LAUNCHER_FOLDERS_SET_UID_FILTER_H
#define QEMU_HARNESS_LAUNCHER_FOLDERS_SET_UID_FILTER_H

/* For this process and all it executes; no_new_privs must be set. 0 or a negative errno. */
int set_uid_filter_load(void);

#endif
