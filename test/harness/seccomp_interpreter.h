/* Runs a system call filter as the kernel does, for any call and any ABI. It implements the
 * instructions that common/os/seccomp_filter_linux.c writes; any other fails the test. */
#ifndef TEST_HARNESS_SECCOMP_INTERPRETER_H
#define TEST_HARNESS_SECCOMP_INTERPRETER_H

#include "test/harness/unit.h"

#include <linux/audit.h>
#include <string.h>

#include "common/os/seccomp_filter_linux.h"

#ifdef __x86_64__
#define OWN_ARCH AUDIT_ARCH_X86_64
#else
#define OWN_ARCH AUDIT_ARCH_AARCH64
#endif

static inline uint32_t seccomp_interpret(const struct seccomp_filter *filter,
                                         const struct seccomp_data *data)
{
    uint32_t accumulator = 0;

    for (size_t pc = 0; pc < filter->length; pc++) {
        const struct sock_filter *code = &filter->code[pc];
        switch (code->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            assert_true(code->k % 4 == 0 && code->k + 4 <= sizeof(*data));
            memcpy(&accumulator, (const char *)data + code->k, 4);
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            pc += accumulator == code->k ? code->jt : code->jf;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            pc += accumulator >= code->k ? code->jt : code->jf;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            pc += (accumulator & code->k) != 0 ? code->jt : code->jf;
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            accumulator &= code->k;
            break;
        case BPF_RET | BPF_K:
            return code->k;
        default:
            fail_msg("instruction %zu has code %#x", pc, code->code);
        }
    }
    fail_msg("the filter runs past its end");
    return 0;
}

#endif
