/* Compares the batch byte for byte with a recorded one, and tests the limits of nft/batch.h. The
 * recorded bytes equal those that Debian's nft 1.0.6 makes from the same rules and those that Linux
 * 6.1 and 6.18 dump; both supported architectures are little-endian. A change of these bytes is a
 * change of the policy.
 */
#include "test/harness/unit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>

#include "common/text/encoding.h"
#include "nft/batch.h"
#include "nft/policy.h"
#include "test/harness/guard.h"

#define SEQUENCE 0x11223344u

static const struct {
    const char *label, *hex;
} golden[] = {
    {"the batch", "140000001000010044332211000000000000000a"},
    {"table inet codev", "20000000000a05044533221100000000010000000a000100636f646576000000"},
    {"the old table inet codev",
     "20000000020a05004633221100000000010000000a000100636f646576000000"},
    {"table inet codev", "28000000000a05044733221100000000010000000a000100636f646576000000"
                         "0800020000000002"},
    {"chain output", "54000000030a05044833221100000000010000000a000100636f646576000000"
                     "0b0003006f757470757400001400040008000100000000030800020000000000"
                     "08000500000000000b00070066696c7465720000"},
    {"chain input", "54000000030a05044933221100000000010000000a000100636f646576000000"
                    "0a000300696e7075740000001400040008000100000000010800020000000000"
                    "08000500000000000b00070066696c7465720000"},
    {"chain forward", "54000000030a05044a33221100000000010000000a000100636f646576000000"
                      "0c000300666f7277617264001400040008000100000000020800020000000000"
                      "08000500000000000b00070066696c7465720000"},
    {"the rule that accepts output over lo",
     "b0000000060a050c4b33221100000000010000000a000100636f646576000000"
     "0b0002006f757470757400008400040024000100090001006d65746100000000"
     "14000200080002000000000508000100000000012c00010008000100636d7000"
     "20000200080001000000000108000200000000000c0003000800010001000000"
     "300001000e000100696d6d6564696174650000001c0002000800010000000000"
     "100002000c0002000800010000000001"},
    {"the rule that resets other TCP output",
     "9c000000060a050c4c33221100000000010000000a000100636f646576000000"
     "0b0002006f757470757400007000040024000100090001006d65746100000000"
     "14000200080002000000001008000100000000012c00010008000100636d7000"
     "20000200080001000000000108000200000000000c0003000500010006000000"
     "1c0001000b00010072656a65637400000c0002000800010000000001"},
    {"the rule that prohibits other output",
     "54000000060a050c4d33221100000000010000000a000100636f646576000000"
     "0b0002006f7574707574000028000400240001000b00010072656a6563740000"
     "1400020008000100000000020500020003000000"},
    {"the rule that accepts input from lo",
     "b0000000060a050c4e33221100000000010000000a000100636f646576000000"
     "0a000200696e7075740000008400040024000100090001006d65746100000000"
     "14000200080002000000000408000100000000012c00010008000100636d7000"
     "20000200080001000000000108000200000000000c0003000800010001000000"
     "300001000e000100696d6d6564696174650000001c0002000800010000000000"
     "100002000c0002000800010000000001"},
    {"the batch's end", "14000000110001004f332211000000000000000a"},
};
#define GOLDEN (sizeof(golden) / sizeof(golden[0]))

static struct batch batch;

/* Compares a message, without its sequence number if messages before it are left out. */
static void assert_message(unsigned index, const char *hex, bool with_sequence)
{
    const struct nlmsghdr *message = batch_at(&batch, index);
    size_t length = message->nlmsg_len;
    struct nlmsghdr *expected = calloc(1, length);
    assert_int_equal(strlen(hex), 2 * length);
    assert_int_equal(hex_decode(expected, length, hex, 2 * length), 0);
    assert_int_equal(message->nlmsg_seq, SEQUENCE + index);
    if (!with_sequence)
        expected->nlmsg_seq = message->nlmsg_seq;
    assert_memory_equal(message, expected, length);
    free(expected);
}

static void the_whole_batch_is_as_recorded(void **state)
{
    (void)state;
    assert_int_equal(policy_write(&batch, SEQUENCE, true, true), 0);
    assert_int_equal(batch.count, GOLDEN);
    size_t total = 0;
    for (unsigned i = 0; i < GOLDEN; i++) {
        assert_int_equal(batch.messages[i].offset, total);
        assert_string_equal(batch.messages[i].label, golden[i].label);
        assert_message(i, golden[i].hex, true);
        total += strlen(golden[i].hex) / 2;
    }
    assert_int_equal(batch.length, total);
    assert_int_equal(batch.messages[batch.state].type, NFT_MSG_NEWTABLE);
    assert_int_equal(batch.state, 3);
}

static void without_reject_only_these_rules_are_missing(void **state)
{
    (void)state;
    assert_int_equal(policy_write(&batch, SEQUENCE, true, false), 0);
    unsigned at = 0;
    for (unsigned i = 0; i < GOLDEN; i++)
        if (strcmp(golden[i].label, "the rule that resets other TCP output") != 0 &&
            strcmp(golden[i].label, "the rule that prohibits other output") != 0)
            assert_message(at++, golden[i].hex, false);
    assert_int_equal(at, batch.count);
}

static void without_owner_only_the_flag_is_missing(void **state)
{
    (void)state;
    assert_int_equal(policy_write(&batch, SEQUENCE, false, true), 0);
    assert_int_equal(batch.count, GOLDEN);
    for (unsigned i = 0; i < GOLDEN; i++) {
        char hex[1024];
        strcpy(hex, golden[i].hex);
        if (i == batch.state)
            hex[strlen(hex) - 1] = '0';
        assert_message(i, hex, true);
        assert_int_not_equal(batch.messages[i].feature, FEATURE_OWNER);
    }
}

static void too_many_messages_are_an_error_for_good(void **state)
{
    (void)state;
    batch_begin(&batch, 1);
    for (int i = 0; i < BATCH_MESSAGES_MAX - 1; i++)
        batch_message(&batch, NFT_MSG_NEWTABLE, 0, "x", FEATURE_NONE);
    assert_int_equal(batch.error, 0);
    assert_int_equal(batch_end(&batch), -ENOSPC);
    assert_int_equal(batch_end(&batch), -ENOSPC);
}

static void a_full_buffer_is_an_error_for_good(void **state)
{
    (void)state;
    struct batch *guarded = guard_alloc(sizeof(*guarded));
    char bytes[700] = {0};
    /* every way of running out: in an attribute, a nest, a header */
    for (size_t piece = 1; piece < sizeof(bytes); piece++) {
        batch_begin(guarded, 1);
        for (int i = 0; i < BATCH_MESSAGES_MAX - 2; i++) {
            batch_message(guarded, NFT_MSG_NEWRULE, 0, "x", FEATURE_NONE);
            struct nlattr *outer = batch_nest_begin(guarded, 1);
            struct nlattr *inner = batch_nest_begin(guarded, 2);
            batch_put_bytes(guarded, 3, bytes, piece);
            batch_nest_end(guarded, inner);
            batch_nest_end(guarded, outer);
        }
        size_t needed = 2 * 20 + (BATCH_MESSAGES_MAX - 2) * (20 + 8 + 4 + (piece + 3) / 4 * 4);
        assert_int_equal(batch_end(guarded), needed <= BATCH_BYTES_MAX ? 0 : -ENOSPC);
        assert_true(guarded->length <= BATCH_BYTES_MAX);
    }
    guard_free(guarded, sizeof(*guarded));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_whole_batch_is_as_recorded),
        cmocka_unit_test(without_reject_only_these_rules_are_missing),
        cmocka_unit_test(without_owner_only_the_flag_is_missing),
        cmocka_unit_test(too_many_messages_are_an_error_for_good),
        cmocka_unit_test(a_full_buffer_is_an_error_for_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
