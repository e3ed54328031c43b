/* See set_uid_filter.h.
 *
 * Calls that give a file its mode fail with EPERM when the mode holds S_ISUID; where only files are made (open,
 * mknod), S_ISGID too. In chmod it cannot be told from that of a folder, where it is harmless and in use. What
 * takes a mode in memory (openat2, io_uring) or has other numbers (another ABI) is not there: ENOSYS.
 */
#include "qemu-harness/launcher/folders/set_uid_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "common/os/cleanup.h"

#if defined(__x86_64__)
#define THIS_ABI AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ABI AUDIT_ARCH_AARCH64
#else
#error "no filter for this architecture"
#endif

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

#define X32_BIT 0x40000000u /* asm/unistd.h: __X32_SYSCALL_BIT; no number is that high elsewhere */
#define CREATES (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))
#define NO_FLAGS UINT8_MAX
#define FILTER_MAX 128

struct mode_call {
    unsigned number;
    uint8_t mode, flags; /* arguments; without CREATES in `flags` there is no mode */
    uint32_t refused;
};

static const struct mode_call mode_calls[] = {
    {SYS_fchmod, 1, NO_FLAGS, S_ISUID},
    {SYS_fchmodat, 2, NO_FLAGS, S_ISUID},
    {SYS_fchmodat2, 2, NO_FLAGS, S_ISUID},
    {SYS_openat, 3, 2, S_ISUID | S_ISGID},
    {SYS_mknodat, 2, NO_FLAGS, S_ISUID | S_ISGID},
#ifdef SYS_chmod
    {SYS_chmod, 1, NO_FLAGS, S_ISUID},
    {SYS_open, 2, 1, S_ISUID | S_ISGID},
    {SYS_creat, 1, NO_FLAGS, S_ISUID | S_ISGID},
    {SYS_mknod, 1, NO_FLAGS, S_ISUID | S_ISGID},
#endif
};

static const unsigned absent_calls[] = {SYS_openat2, SYS_io_uring_setup};

struct filter {
    struct sock_filter code[FILTER_MAX];
    unsigned short length;
};

static void emit(struct filter *filter, struct sock_filter instruction)
{
    if (filter->length < FILTER_MAX)
        filter->code[filter->length] = instruction;
    filter->length++; /* past FILTER_MAX: told at the end */
}

#define LOAD(at) ((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (at)))
#define LOAD_FIELD(field) LOAD((uint32_t)offsetof(struct seccomp_data, field))
/* the low word: both ABIs are little-endian */
#define LOAD_ARGUMENT(n) LOAD((uint32_t)(offsetof(struct seccomp_data, args) + 8u * (n)))
#define VERDICT(action) ((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, (action)))
#define REFUSE(error) VERDICT(SECCOMP_RET_ERRNO | (error))
#define UNLESS(comparison, value, skipped)                                                         \
    ((struct sock_filter)BPF_JUMP(BPF_JMP | (comparison) | BPF_K, (value), 0, (skipped)))

static void emit_mode_call(struct filter *filter, const struct mode_call *call)
{
    bool has_flags = call->flags != NO_FLAGS;
    emit(filter, UNLESS(BPF_JEQ, call->number, has_flags ? 8 : 4));
    if (has_flags) {
        emit(filter, LOAD_ARGUMENT(call->flags));
        emit(filter, UNLESS(BPF_JSET, CREATES, 1));
        emit(filter, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 1));
        emit(filter, VERDICT(SECCOMP_RET_ALLOW));
    }
    emit(filter, LOAD_ARGUMENT(call->mode));
    emit(filter, UNLESS(BPF_JSET, call->refused, 1));
    emit(filter, REFUSE(EPERM));
    emit(filter, VERDICT(SECCOMP_RET_ALLOW));
}

int set_uid_filter_load(void)
{
    static struct filter filter;
    filter.length = 0;
    emit(&filter, LOAD_FIELD(arch));
    emit(&filter, UNLESS(BPF_JEQ, THIS_ABI, 1));
    emit(&filter, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 1));
    emit(&filter, REFUSE(ENOSYS));
    emit(&filter, LOAD_FIELD(nr));
    emit(&filter, UNLESS(BPF_JGE, X32_BIT, 1));
    emit(&filter, REFUSE(ENOSYS));
    for (size_t i = 0; i < ARRAY_LENGTH(absent_calls); i++) {
        emit(&filter, UNLESS(BPF_JEQ, absent_calls[i], 1));
        emit(&filter, REFUSE(ENOSYS));
    }
    for (size_t i = 0; i < ARRAY_LENGTH(mode_calls); i++)
        emit_mode_call(&filter, &mode_calls[i]);
    emit(&filter, VERDICT(SECCOMP_RET_ALLOW));
    if (filter.length > FILTER_MAX)
        return -E2BIG;
    struct sock_fprog program = {.len = filter.length, .filter = filter.code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}
