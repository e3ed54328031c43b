/* Loaded into QEMU (-plugin): how many instructions a guest ran and how many QEMU translated, at
 * marks.
 *
 * A mark is a function's entry, known by its place in a page and its first bytes, since a program
 * may lie anywhere. Each time that one runs, a line with the three sums so far goes into the file:
 *
 *     EXECUTED STEPS TRANSLATED
 *
 * EXECUTED is what a processor would count: a repeated string instruction (rep stos) is one, and
 * its repetitions, which QEMU runs one by one, are STEPS. TRANSLATED are the instructions that ran
 * for the first time, which is what takes the time of an emulated boot. A wait is none of them. A
 * block that a fault leaves early counts whole; the sums are plain numbers, so the guest must have
 * one processor.
 *
 * Arguments: out=FILE, which must be there, since QEMU may not make one; mark=HEX:HEX, a function's
 * place in its page and its bytes. Debian packages no header of this interface; below is what of
 * its version 1 (QEMU 4.2 and later, qemu-plugin.h) is used here.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info_t;
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };

extern int qemu_plugin_version;
int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc, char **argv);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
                                           void (*call)(qemu_plugin_id_t id,
                                                        struct qemu_plugin_tb *block));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block,
                                          void (*call)(unsigned vcpu, void *data),
                                          enum qemu_plugin_cb_flags flags, void *data);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *block, enum qemu_plugin_op op,
                                              void *sum, uint64_t addend);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *instruction);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *instruction);

#define EXPORTED __attribute__((visibility("default")))
#define PAGE_SIZE 4096
#define MARKS_MAX 4
#define MARK_BYTES 12

struct mark {
    unsigned long place;
    unsigned char bytes[MARK_BYTES];
};

EXPORTED int qemu_plugin_version = 1;

static struct mark marks[MARKS_MAX];
static unsigned mark_count;
static uint64_t executed, steps, translated;
static FILE *out;

static void mark_ran(unsigned vcpu, void *data)
{
    (void)vcpu;
    (void)data;
    fprintf(out, "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", executed, steps, translated);
    fflush(out);
}

/* Whether the block begins as the mark's function does; one that is shorter than MARK_BYTES need
 * only agree as far as it goes. */
static bool block_is_mark(const struct qemu_plugin_tb *block, const struct mark *mark)
{
    size_t same = 0;

    if (qemu_plugin_tb_vaddr(block) % PAGE_SIZE != mark->place)
        return false;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block) && same < MARK_BYTES; i++) {
        const struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
        size_t size = qemu_plugin_insn_size(instruction);
        size = size > MARK_BYTES - same ? MARK_BYTES - same : size;
        if (memcmp(qemu_plugin_insn_data(instruction), mark->bytes + same, size) != 0)
            return false;
        same += size;
    }
    return same >= MARK_BYTES / 2;
}

/* A block of one `rep` (or `repne`) string instruction: QEMU enters it anew for each repetition
 * after the first. */
static bool block_is_repetition(const struct qemu_plugin_tb *block)
{
    static const unsigned char string_instructions[] = "\x6c\x6d\x6e\x6f\xa4\xa5\xa6\xa7\xaa\xab"
                                                       "\xac\xad\xae\xaf";
    const struct qemu_plugin_insn *only = qemu_plugin_tb_get_insn(block, 0);
    const unsigned char *bytes = qemu_plugin_insn_data(only);
    const size_t size = qemu_plugin_insn_size(only);

    return qemu_plugin_tb_n_insns(block) == 1 && size >= 2 && size <= 4 &&
           (bytes[0] == 0xf2 || bytes[0] == 0xf3) &&
           memchr(string_instructions, bytes[size - 1], sizeof(string_instructions) - 1);
}

static void block_translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    const size_t count = qemu_plugin_tb_n_insns(block);
    uint64_t *sum = block_is_repetition(block) ? &steps : &executed;

    (void)id;
    translated += count;
    for (unsigned i = 0; i < mark_count; i++) {
        if (block_is_mark(block, &marks[i]))
            qemu_plugin_register_vcpu_tb_exec_cb(block, mark_ran, QEMU_PLUGIN_CB_NO_REGS, NULL);
    }
    qemu_plugin_register_vcpu_tb_exec_inline(block, QEMU_PLUGIN_INLINE_ADD_U64, sum, count);
}

static bool mark_read(const char *text)
{
    struct mark *mark = &marks[mark_count];
    char *end;

    if (mark_count == MARKS_MAX)
        return false;
    mark->place = strtoul(text, &end, 16);
    if (*end != ':' || strlen(end + 1) != 2 * (size_t)MARK_BYTES)
        return false;
    for (unsigned i = 0; i < MARK_BYTES; i++) {
        if (sscanf(end + 1 + 2 * (size_t)i, "%2hhx", &mark->bytes[i]) != 1)
            return false;
    }
    mark_count++;
    return true;
}

EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc,
                                 char **argv)
{
    (void)info;
    for (int i = 0; i < argc; i++) {
        bool understood = strncmp(argv[i], "mark=", 5) == 0 && mark_read(argv[i] + 5);
        if (!understood && strncmp(argv[i], "out=", 4) == 0)
            understood = (out = fopen(argv[i] + 4, "r+"));
        if (!understood)
            return -1;
    }
    if (!out || mark_count == 0)
        return -1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, block_translated);
    return 0;
}
