/* Tests of what changes a process for good (rights, namespaces, filters): the work runs in a forked
 * child, which says where it failed by its exit status. */
#ifndef TEST_HARNESS_CHILD_H
#define TEST_HARNESS_CHILD_H

#include "test/harness/unit.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child: ends it when the condition does not hold, naming the line on standard error. */
#define CHILD_ASSERT(condition)                                                                    \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            dprintf(STDERR_FILENO, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition,       \
                    errno);                                                                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* Runs `work` in a child and asserts that it came to its end. */
static inline void in_child(void (*work)(void))
{
    int status = 0;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        work();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* The same for work that only root can do. */
static inline void in_root_child(void (*work)(void))
{
    if (geteuid() != 0)
        skip();
    in_child(work);
}

#endif
