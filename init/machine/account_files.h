/* /etc/passwd and /etc/group as text: look-ups and rewriting, without I/O. */
#ifndef INIT_MACHINE_ACCOUNT_FILES_H
#define INIT_MACHINE_ACCOUNT_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ACCOUNT_TEXT_MAX 128

struct account {
    char name[ACCOUNT_TEXT_MAX], home[ACCOUNT_TEXT_MAX], shell[ACCOUNT_TEXT_MAX];
    uid_t uid;
    gid_t gid;
};

/* The account `name`. 0, -ENOENT, or -EINVAL when its line does not have seven fields, has ids that
 * are not numbers, or a text that is longer than ACCOUNT_TEXT_MAX. */
int passwd_find(const char *text, const char *name, struct account *out);

/* Writes into `owner` the name of an account other than `name` that has this uid (or, for the
 * second, this primary group), and returns 1; else 0. */
int passwd_uid_owner(const char *text, const char *name, uid_t uid, char owner[ACCOUNT_TEXT_MAX]);
int passwd_gid_owner(const char *text, const char *name, gid_t gid, char owner[ACCOUNT_TEXT_MAX]);

/* Copies the text with other ids for one account, or for one group (chosen by its present gid). All
 * other bytes stay. The new length, or -ENOSPC. */
int passwd_rewrite(char *out, size_t size, const char *text, const char *name, uid_t uid,
                   gid_t gid);
int group_rewrite(char *out, size_t size, const char *text, gid_t old_gid, gid_t new_gid);

#endif
