/* Loads, verifies and restores the firewall against a simulated kernel that fails in each known
 * way. */
#include "test/harness/unit.h"

#include <errno.h>
#include <string.h>

#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "nft/firewall.h"
#include "test/harness/fake_nftables.h"

#define RULES_ALL 4u
#define RULES_WITHOUT_REJECT 2u
#define ACKNOWLEDGED 10 /* messages of the batch */
#define ATTEMPTS 16
#define ERESTART_NUMBER 85

static struct firewall firewall;
static struct failure why;

static int set_up(void **state)
{
    (void)state;
    fake_reset();
    memset(&why, 0, sizeof(why));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    nft_firewall_close(&firewall);
    return fake.open_sockets; /* every socket was closed, also those of failed loads */
}

static void load(void)
{
    if (nft_firewall_load(&firewall, &why) != 0)
        fail_msg("%s", why.text);
}

static unsigned rules(void)
{
    unsigned count = 0;
    while (fake_object(NFT_MSG_NEWRULE, count))
        count++;
    return count;
}

static void load_fails(int error, const char *reason)
{
    int result = nft_firewall_load(&firewall, &why);
    if (result != -error || !strstr(why.text, reason))
        fail_msg("%d: %s (not %s)", result, why.text, reason);
    assert_null(firewall.owner);
    assert_null(firewall.watch);
}

static void loads_in_one_batch(void **state)
{
    (void)state;
    load();
    assert_int_equal(fake.batches, 1);
    assert_int_equal(rules(), RULES_ALL);
    assert_true(firewall.has_owner && firewall.has_reject);
    assert_int_equal(firewall.generation, fake.generation);
}

static void interruptions_change_nothing(void **state)
{
    (void)state;
    fake.interrupted = true;
    load();
    assert_int_equal(fake.batches, 1);
}

static void refuse(uint16_t type, const char *holding, int error, int times)
{
    fake.refusal = (struct fake_refusal){error, times, type, holding};
}

static void a_stale_batch_is_sent_again(void **state)
{
    (void)state;
    refuse(FAKE_BATCH_BEGIN, NULL, ERESTART_NUMBER, 3);
    load();
    assert_int_equal(fake.batches, 4);
}

static void it_is_not_sent_for_ever(void **state)
{
    (void)state;
    refuse(FAKE_BATCH_BEGIN, NULL, ERESTART_NUMBER, FAKE_ALWAYS);
    load_fails(ERESTART_NUMBER, "load the firewall, 16 times");
    assert_int_equal(fake.batches, ATTEMPTS);
}

static void load_with_loss(int answers, int told, int silent)
{
    fake_reset();
    fake.answers_before_loss = answers;
    fake.lost_answers = told;
    fake.silent_losses = silent;
    load();
    assert_int_equal(fake.lost_answers + fake.silent_losses, 0);
    assert_int_equal(rules(), RULES_ALL);
    nft_firewall_close(&firewall);
    assert_int_equal(fake.open_sockets, 0);
}

static void lost_answers_are_asked_for_again(void **state)
{
    (void)state;
    /* the generation, an acknowledgement for each message, three dumps between two generations */
    for (int answers = 0; answers < 1 + ACKNOWLEDGED + 1 + 2 + 4 + 5 + 1; answers++)
        load_with_loss(answers, 1, 0);
    /* losses that the kernel does not report: all answers but the dumps */
    for (int answers = 0; answers < 1 + ACKNOWLEDGED; answers++)
        load_with_loss(answers, 0, 1);
}

static void acknowledged_messages_are_no_commit(void **state)
{
    (void)state;
    fake.commit_error = ENOMEM;
    load_fails(ENOMEM, "the batch: Cannot allocate memory");
}

static void datagrams_of_processes_are_ignored(void **state)
{
    (void)state;
    fake.forged = 5;
    load();
    assert_int_equal(fake.forged, 0);
}

static void without_owners_the_table_has_none(void **state)
{
    (void)state;
    static const int errors[] = {EOPNOTSUPP, EINVAL}; /* newer and older kernels */
    for (int i = 0; i < 2; i++) {
        fake_reset();
        fake.owner_error = errors[i];
        load();
        assert_false(firewall.has_owner);
        assert_true(firewall.has_reject);
        assert_int_equal(rules(), RULES_ALL);
        nft_firewall_close(&firewall);
    }
}

static void without_reject_packets_are_dropped(void **state)
{
    (void)state;
    refuse(NFT_MSG_NEWRULE, "reject", ENOENT, FAKE_ALWAYS);
    load();
    assert_false(firewall.has_reject);
    assert_true(firewall.has_owner);
    assert_int_equal(rules(), RULES_WITHOUT_REJECT);
}

static void missing_pieces_are_named(void **state)
{
    (void)state;
    static const struct {
        uint16_t type;
        int error;
        const char *reason;
    } cases[] = {
        {NFT_MSG_GETGEN, EINVAL, "nf_tables is missing in this kernel (CONFIG_NF_TABLES)"},
        {NFT_MSG_GETGEN, EPERM, "CAP_NET_ADMIN is missing"},
        {FAKE_BATCH_BEGIN, EOPNOTSUPP, "nf_tables is missing in this kernel (CONFIG_NF_TABLES)"},
        {FAKE_BATCH_BEGIN, EPERM, "CAP_NET_ADMIN is missing"},
        {NFT_MSG_NEWTABLE, EOPNOTSUPP, "no inet family in this kernel (CONFIG_NF_TABLES_INET)"},
        {NFT_MSG_NEWTABLE, EPERM, "table inet codev belongs to another process"},
        {NFT_MSG_DELTABLE, EBUSY, "the old table inet codev: Device or resource busy"},
        {NFT_MSG_NEWCHAIN, ENOENT, "chain output: nf_tables has no filter chains"},
        {NFT_MSG_NEWRULE, ENOENT, "the rule that accepts output over lo: meta, cmp or immediate"},
        {NFT_MSG_NEWRULE, ENOMEM, "the rule that accepts output over lo: Cannot allocate memory"},
        {NFT_MSG_GETRULE, EIO, "read the firewall back: Input/output error"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fake_reset();
        refuse(cases[i].type, NULL, cases[i].error, FAKE_ALWAYS);
        load_fails(cases[i].error, cases[i].reason);
    }
    fake_reset();
    fake.socket_error = EPROTONOSUPPORT;
    load_fails(EPROTONOSUPPORT, "nfnetlink is missing in this kernel (CONFIG_NETFILTER_NETLINK)");
}

static void a_moving_rule_set_is_read_again(void **state)
{
    (void)state;
    fake.moving = 10;
    load();
    fake_reset();
    nft_firewall_close(&firewall);
    fake.open_sockets = 0;
    fake.moving = FAKE_ALWAYS;
    load_fails(EBUSY, "kept changing");
}

static void a_disturbed_dump_is_read_again(void **state)
{
    (void)state;
    fake.disturbed_dumps = 4;
    fake.foreign_tables = 2;
    load();
    assert_int_equal(fake.disturbed_dumps, 0);
}

static enum firewall_event check(void)
{
    enum firewall_event event = FIREWALL_EVENT_COUNT;
    int result = nft_firewall_check(&firewall, &event, &why);
    assert_int_equal(result < 0, event == FIREWALL_LOST);
    return event;
}

static void what_is_not_ours_leaves_it_intact(void **state)
{
    (void)state;
    load();
    assert_int_equal(check(), FIREWALL_INTACT);
    fake.generation++; /* another table was changed */
    assert_int_equal(check(), FIREWALL_INTACT);
    assert_int_equal(firewall.generation, fake.generation);
    assert_int_equal(fake.batches, 1);
}

static void expect_restored(const char *reason)
{
    int batches = fake.batches;
    assert_int_equal(check(), FIREWALL_RESTORED);
    if (!strstr(why.text, reason))
        fail_msg("%s (not %s)", why.text, reason);
    assert_int_equal(fake.batches, batches + 1);
    assert_int_equal(rules(), RULES_ALL);
    assert_int_equal(check(), FIREWALL_INTACT);
}

static void every_change_is_restored(void **state)
{
    (void)state;
    load();
    fake_remove(fake_object(NFT_MSG_NEWRULE, 1));
    expect_restored("the rule that resets other TCP output is not as it was loaded");
    fake_remove(fake_object(NFT_MSG_NEWRULE, 3));
    expect_restored("the rule that accepts input from lo is missing");
    fake_remove(fake_object(NFT_MSG_NEWCHAIN, 2));
    expect_restored("table inet codev is not as it was loaded"); /* its use count */
    fake_double(fake_object(NFT_MSG_NEWRULE, 0));
    expect_restored("something was added");
    fake_double(fake_object(NFT_MSG_NEWCHAIN, 0));
    expect_restored("table inet codev is not as it was loaded");
    fake.count = 0;
    fake.generation++;
    expect_restored("table inet codev is missing");
}

/* Changes each byte of an attribute, its header included, one at a time. */
static void change_each_byte(char *attribute, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        attribute[i] ^= 1;
        fake.generation++;
        assert_int_equal(check(), FIREWALL_RESTORED);
    }
}

static void every_byte_counts(void **state)
{
    (void)state;
    load();
    for (unsigned object = 0; object < fake.count; object++) {
        struct fake_object *found = &fake.objects[object];
        for (size_t at = 0; at < found->length;) {
            size_t length = ((struct nlattr *)(void *)(found->attributes + at))->nla_len;
            change_each_byte(found->attributes + at, length);
            at += MNL_ALIGN(length); /* the padding after an attribute has no meaning */
        }
    }
}

static void what_hides_in_the_table_is_found(void **state)
{
    (void)state;
    fake.use_surplus = 1; /* for example a set */
    load_fails(EBADMSG, "table inet codev is not as it was loaded");
    fake_reset();
    fake.owner = FAKE_PORT + 1;
    load_fails(EBADMSG, "table inet codev is not as it was loaded");
}

static void what_cannot_be_restored_is_lost(void **state)
{
    (void)state;
    load();
    fake_remove(fake_object(NFT_MSG_NEWTABLE, 0));
    refuse(NFT_MSG_NEWTABLE, NULL, EPERM, FAKE_ALWAYS);
    assert_int_equal(check(), FIREWALL_LOST);
    assert_non_null(strstr(why.text, "belongs to another process"));
    refuse(0, NULL, 0, 0);
    fake.use_surplus = 1;
    assert_int_equal(check(), FIREWALL_LOST);
    assert_int_equal(check(), FIREWALL_LOST); /* again: a failed check is not remembered as seen */
    fake.use_surplus = 0;
    assert_int_equal(check(), FIREWALL_INTACT);
}

static void closing_twice_is_harmless(void **state)
{
    (void)state;
    load();
    nft_firewall_close(&firewall);
    nft_firewall_close(&firewall);
    struct firewall zero = {0};
    nft_firewall_close(&zero);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(loads_in_one_batch),
        TEST(interruptions_change_nothing),
        TEST(a_stale_batch_is_sent_again),
        TEST(it_is_not_sent_for_ever),
        TEST(lost_answers_are_asked_for_again),
        TEST(acknowledged_messages_are_no_commit),
        TEST(datagrams_of_processes_are_ignored),
        TEST(without_owners_the_table_has_none),
        TEST(without_reject_packets_are_dropped),
        TEST(missing_pieces_are_named),
        TEST(a_moving_rule_set_is_read_again),
        TEST(a_disturbed_dump_is_read_again),
        TEST(what_is_not_ours_leaves_it_intact),
        TEST(every_change_is_restored),
        TEST(every_byte_counts),
        TEST(what_hides_in_the_table_is_found),
        TEST(what_cannot_be_restored_is_lost),
        TEST(closing_twice_is_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
