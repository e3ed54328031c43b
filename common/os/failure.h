/* The reason of a failure, for users: what was being done, to what, and why it failed.
 *
 * Library code never logs and never exits. A function whose reasons matter to users takes a
 * `struct failure *why` as its last argument, describes the first failure there and returns a
 * negative errno. The text is one line without a trailing full stop.
 */
#ifndef COMMON_OS_FAILURE_H
#define COMMON_OS_FAILURE_H

#define FAILURE_TEXT_MAX 512

struct failure {
    char text[FAILURE_TEXT_MAX];
};

/* Stores the formatted text (cut to size) and returns -error, so that `return failure_set(...)` is
 * the whole error path. `error` is a positive errno; `why` may be NULL. */
int failure_set(struct failure *why, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Like failure_set, and appends ": " and strerror(error). */
int failure_errno(struct failure *why, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "PREFIX: " in front of the stored text and returns `result`: for callers that know more
 * about what was being done. */
int failure_prefix(struct failure *why, int result, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
