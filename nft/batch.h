/* Builds a batch of nf_tables messages in a fixed buffer. The first error is kept, so that callers
 * check once, at the end.
 *
 * A batch is BATCH_BEGIN, messages, BATCH_END; the kernel applies all of them or none. Each message
 * asks for an acknowledgement and has a label for error messages. Nested attributes are written
 * without NLA_F_NESTED: the kernel accepts them with and without the flag but dumps them without
 * it, and the dump must equal what was sent byte for byte (nft/verify.h).
 */
#ifndef NFT_BATCH_H
#define NFT_BATCH_H

#include <stddef.h>
#include <stdint.h>

#define BATCH_BYTES_MAX 4096
#define BATCH_MESSAGES_MAX 24 /* BEGIN and END included */

struct nlmsghdr;
struct nlattr;

/* Features that the firewall uses where the kernel has them, and leaves out elsewhere. */
enum batch_feature {
    FEATURE_NONE,
    FEATURE_OWNER,  /* NFT_TABLE_F_OWNER */
    FEATURE_REJECT, /* the reject expression */
    FEATURE_COUNT
};

struct batch_message {
    const char *label; /* static: names the message's object in error messages */
    uint16_t type;     /* NFT_MSG_..., NFNL_MSG_BATCH_... */
    uint16_t offset;   /* in the batch's bytes */
    enum batch_feature feature;
};

struct batch {
    _Alignas(4) char bytes[BATCH_BYTES_MAX];
    size_t length;
    uint32_t sequence; /* of BATCH_BEGIN; the message at index i has sequence + i */
    unsigned count;
    unsigned state; /* index of the first message whose object exists after the commit */
    int error;      /* sticky: 0, or -ENOSPC */
    struct batch_message messages[BATCH_MESSAGES_MAX];
};

void batch_begin(struct batch *batch, uint32_t sequence);

/* Starts the next message, for the inet family. `type` is NFT_MSG_NEWTABLE, NFT_MSG_NEWRULE... */
void batch_message(struct batch *batch, uint16_t type, uint16_t flags, const char *label,
                   enum batch_feature feature);

/* Marks the next message as the first that describes the state after the commit. */
void batch_state_begins(struct batch *batch);

void batch_put_string(struct batch *batch, uint16_t type, const char *value); /* with its NUL */
void batch_put_be32(struct batch *batch, uint16_t type, uint32_t value);
void batch_put_bytes(struct batch *batch, uint16_t type, const void *value, size_t length);

/* The puts between the two calls go into the nest. batch_nest_begin returns NULL after an error;
 * batch_nest_end accepts that. */
struct nlattr *batch_nest_begin(struct batch *batch, uint16_t type);
void batch_nest_end(struct batch *batch, struct nlattr *nest);

/* Writes BATCH_END. Returns 0 or the first error of the batch. */
int batch_end(struct batch *batch);

/* The message at an index, as it is sent to the kernel. */
const struct nlmsghdr *batch_at(const struct batch *batch, unsigned index);

#endif
