/* A kernel's nf_tables made of four wrapped system calls (socket, bind and the like succeed; sendto
 * and recvmsg are answered from here), which can be told to fail in the ways that real kernels do.
 * It keeps what a batch leaves as the messages themselves, and dumps them with the attributes that
 * a kernel adds.
 */
#ifndef TEST_HARNESS_FAKE_NFTABLES_H
#define TEST_HARNESS_FAKE_NFTABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_OBJECTS_MAX 16
#define FAKE_OBJECT_BYTES 512
#define FAKE_PORT 4242u
#define FAKE_ALWAYS 1000000
#define FAKE_BATCH_BEGIN                                                                           \
    0x100 /* for a refusal: NFNL_MSG_BATCH_BEGIN has the number of another type */

struct fake_object {
    uint16_t type; /* NFT_MSG_NEW... */
    size_t length; /* of the attributes */
    _Alignas(4) char attributes[FAKE_OBJECT_BYTES];
};

/* A refusal of messages of a type; with `holding` only of those that contain that text. */
struct fake_refusal {
    int error;     /* positive errno; 0: none */
    int times;     /* how many batches or requests it hits */
    uint16_t type; /* NFT_MSG_... or FAKE_BATCH_BEGIN */
    const char *holding;
};

struct fake_kernel {
    struct fake_object objects[FAKE_OBJECTS_MAX];
    unsigned count;
    uint32_t generation;

    /* faults */
    struct fake_refusal refusal;
    int socket_error; /* of socket(2) */
    bool interrupted; /* every second system call is EINTR */
    int commit_error; /* positive errno for BATCH_BEGIN although all messages are acknowledged */
    int owner_error;  /* positive errno for a table with NFT_TABLE_F_OWNER: no such kernel */
    int answers_before_loss; /* come through before the next two begin */
    int lost_answers;        /* datagrams to drop, each then told as ENOBUFS */
    int silent_losses;       /* datagrams to drop without a word */
    int moving;              /* GETGENs that find a new generation */
    int disturbed_dumps;     /* dumps marked NLM_F_DUMP_INTR */
    int forged;              /* datagrams from a process to put before answers */
    int foreign_tables;      /* other tables in every dump */
    unsigned use_surplus;    /* added to the table's use count */
    uint32_t owner;          /* what NFTA_TABLE_OWNER says; 0: FAKE_PORT */

    /* what was seen */
    int batches, open_sockets;
};

extern struct fake_kernel fake;

/* An empty kernel without faults. */
void fake_reset(void);

/* The n-th object of a type, or NULL. */
struct fake_object *fake_object(uint16_t type, unsigned n);

/* Removes an object, or doubles it. */
void fake_remove(struct fake_object *object);
void fake_double(const struct fake_object *object);

#endif
