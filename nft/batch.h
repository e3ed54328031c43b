/* Builds a batch of nf_tables messages in a fixed buffer, with a sticky error so that callers check once.
 *
 * A batch is BATCH_BEGIN, messages, BATCH_END; the kernel applies all of them or none. Each message asks
 * for an acknowledgement and carries what a failure of it means in words. Nested attributes are written
 * without NLA_F_NESTED: the kernel accepts both and dumps them so, and what is sent must come back
 * byte for byte.
 */
#ifndef NFT_BATCH_H
#define NFT_BATCH_H

#include <stddef.h>
#include <stdint.h>

#define BATCH_BYTES_MAX 4096
#define BATCH_MESSAGES_MAX 24 /* BEGIN and END included */

struct nlmsghdr;
struct nlattr;

/* What a kernel may lack and the firewall can do without. */
enum batch_feature {
    FEATURE_NONE,
    FEATURE_OWNER,  /* NFT_TABLE_F_OWNER */
    FEATURE_REJECT, /* the reject expression */
    FEATURE_COUNT
};

struct batch_message {
    const char *label; /* static: what the message is for, in words */
    uint16_t type;     /* NFT_MSG_..., NFNL_MSG_BATCH_... */
    uint16_t offset;   /* in the bytes */
    enum batch_feature feature;
};

struct batch {
    _Alignas(4) char bytes[BATCH_BYTES_MAX];
    size_t length;
    uint32_t sequence; /* of BEGIN; the message at index i has sequence + i */
    unsigned count;
    unsigned state; /* index of the first message whose object must exist afterwards */
    int error;      /* sticky: 0, or -ENOSPC */
    struct batch_message messages[BATCH_MESSAGES_MAX];
};

void batch_begin(struct batch *batch, uint32_t sequence);

/* Starts the next message: NFT_MSG_NEWTABLE and such, for the inet family. */
void batch_message(struct batch *batch, uint16_t type, uint16_t flags, const char *label,
                   enum batch_feature feature);

/* Says that the messages from here on describe the state that must be found afterwards. */
void batch_state_begins(struct batch *batch);

void batch_put_string(struct batch *batch, uint16_t type, const char *value); /* with its NUL */
void batch_put_be32(struct batch *batch, uint16_t type, uint32_t value);
void batch_put_bytes(struct batch *batch, uint16_t type, const void *value, size_t length);

/* Between the two stand the nested attributes. NULL after an error, which batch_nest_end accepts. */
struct nlattr *batch_nest_begin(struct batch *batch, uint16_t type);
void batch_nest_end(struct batch *batch, struct nlattr *nest);

/* Writes BATCH_END. 0 or the sticky error. */
int batch_end(struct batch *batch);

/* The message at an index, as it is sent. */
const struct nlmsghdr *batch_at(const struct batch *batch, unsigned index);

#endif
