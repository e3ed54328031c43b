/* System call filters (seccomp) from tables of rules.
 *
 * The first rule of a filter that matches a call decides: its number is the call's and all of its
 * conditions hold. A call that no rule matches gets the filter's default action. Calls through
 * another ABI (ia32 and x32 on x86-64, 32-bit ARM on arm64) have other numbers, so one action is
 * for all of them.
 *
 * Conditions see the low 32 bits of an argument. They are for arguments that the kernel takes as
 * int or unsigned, or whose upper bits mean nothing to the rule; what a pointer points to is out of
 * their reach.
 *
 * The macros have short names because a table has many rows; only files with a table include this
 * header.
 *
 *     static const struct seccomp_rule rules[] = {
 *         RULE(socket, ALLOW, ARGUMENT_IS(0, AF_NETLINK), ARGUMENT_IS(2, NETLINK_ROUTE)),
 *         RULE(socket, REFUSE(EAFNOSUPPORT), ARGUMENT_IS(0, AF_NETLINK)),
 *         RULE(bpf, REFUSE(EPERM)),
 *     };
 */
#ifndef COMMON_OS_SECCOMP_FILTER_LINUX_H
#define COMMON_OS_SECCOMP_FILTER_LINUX_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#define SECCOMP_FILTER_MAX 320   /* instructions */
#define SECCOMP_CONDITIONS_MAX 2 /* of one rule */

/* Actions: SECCOMP_RET_* with their data. */
#define ALLOW SECCOMP_RET_ALLOW
#define REFUSE(error) (SECCOMP_RET_ERRNO | (error))
#define TRAP SECCOMP_RET_TRAP         /* SIGSYS to the calling thread */
#define KILL SECCOMP_RET_KILL_PROCESS /* SIGSYS that cannot be caught */

enum seccomp_test {
    SECCOMP_NO_CONDITION, /* the end of a rule's conditions */
    SECCOMP_EQUAL,        /* (argument & mask) == value */
    SECCOMP_NOT_EQUAL,
    SECCOMP_ANY_BIT, /* (argument & mask) != 0 */
};

struct seccomp_condition {
    uint8_t test;     /* enum seccomp_test */
    uint8_t argument; /* 0 to 5 */
    uint32_t mask, value;
};

#define ARGUMENT_IS(argument, value)                                                               \
    {                                                                                              \
        SECCOMP_EQUAL, (argument), ~0u, (value)                                                    \
    }
#define ARGUMENT_IS_NOT(argument, value)                                                           \
    {                                                                                              \
        SECCOMP_NOT_EQUAL, (argument), ~0u, (value)                                                \
    }
#define ARGUMENT_MASKED(argument, mask, value)                                                     \
    {                                                                                              \
        SECCOMP_EQUAL, (argument), (mask), (value)                                                 \
    }
#define ARGUMENT_HAS_ANY(argument, bits)                                                           \
    {                                                                                              \
        SECCOMP_ANY_BIT, (argument), (bits), 0                                                     \
    }

struct seccomp_rule {
    uint32_t number; /* of the system call */
    uint32_t action;
    struct seccomp_condition conditions[SECCOMP_CONDITIONS_MAX];
};

/* RULE(NAME, ACTION, CONDITION...): a row for SYS_NAME. */
#define RULE(name, verdict, ...)                                                                   \
    {                                                                                              \
        .number = SYS_##name, .action = (verdict), .conditions = { __VA_ARGS__ }                   \
    }

/* A filter under construction, and when it is complete the program that the kernel loads. */
struct seccomp_filter {
    struct sock_filter code[SECCOMP_FILTER_MAX];
    size_t length;
    bool too_long; /* more instructions than `code` holds, or a jump that is too far */
};

/* Builds a filter: start, any number of tables, end. Overflow is remembered and reported at the
 * end: 0, or -E2BIG for tables that are too long. */
void seccomp_filter_start(struct seccomp_filter *filter, uint32_t other_abis);
void seccomp_filter_add(struct seccomp_filter *filter, const struct seccomp_rule *rules,
                        size_t count);
int seccomp_filter_end(struct seccomp_filter *filter, uint32_t default_action);

/* Loads a complete filter for the calling thread and all that it starts, which needs no_new_privs
 * or CAP_SYS_ADMIN. 0, or a negative errno: -EINVAL where the kernel has no filters. */
int seccomp_filter_load(const struct seccomp_filter *filter);

/* All of it for a single table. */
int seccomp_filter_load_table(const struct seccomp_rule *rules, size_t count,
                              uint32_t default_action, uint32_t other_abis);

#endif
