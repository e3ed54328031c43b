/* For tests that change their process permanently (rights, namespaces, filters): the test's work
 * runs in a forked child, whose exit status says whether it failed. */
#ifndef TEST_HARNESS_CHILD_H
#define TEST_HARNESS_CHILD_H

#include "test/harness/unit.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child: when the condition is false, prints the line to standard error and exits. */
#define CHILD_ASSERT(condition)                                                                    \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            dprintf(STDERR_FILENO, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition,       \
                    errno);                                                                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* Runs `work` in a child and asserts that it ran to its end. */
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

/* The same for work that needs root; skipped otherwise. */
static inline void in_root_child(void (*work)(void))
{
    if (geteuid() != 0)
        skip();
    in_child(work);
}

#endif
