/* A fake of the kernel's nf_tables behind wrapped system calls: socket, bind and the like succeed,
 * and sendto and recvmsg are answered from here. It can be told to fail in the ways that real
 * kernels do. It stores the objects of a batch as the messages that made them, and dumps them with
 * the attributes that a kernel adds.
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
    0x100 /* used in a refusal, because NFNL_MSG_BATCH_BEGIN has the number of another type */

struct fake_object {
    uint16_t type; /* NFT_MSG_NEW... */
    size_t length; /* of the attributes */
    _Alignas(4) char attributes[FAKE_OBJECT_BYTES];
};

/* Refuses messages of a type; with `holding`, only those that contain that text. */
struct fake_refusal {
    int error;     /* positive errno; 0: none */
    int times;     /* how many batches or requests are refused */
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
    bool interrupted; /* every second system call fails with EINTR */
    int commit_error; /* positive errno for BATCH_BEGIN after all messages were acknowledged */
    int owner_error;  /* positive errno for NFT_TABLE_F_OWNER, as a kernel without it */
    int answers_before_loss; /* succeed before the next two faults begin */
    int lost_answers;        /* datagrams to drop, each reported as ENOBUFS */
    int silent_losses;       /* datagrams to drop without a report */
    int moving;              /* number of GETGENs that report a new generation */
    int disturbed_dumps;     /* dumps marked NLM_F_DUMP_INTR */
    int forged;              /* datagrams of a user process before each answer */
    int foreign_tables;      /* other tables in every dump */
    unsigned use_surplus;    /* added to the table's use count */
    uint32_t owner;          /* what NFTA_TABLE_OWNER says; 0: FAKE_PORT */

    /* observed calls */
    int batches, open_sockets;
};

extern struct fake_kernel fake;

/* An empty kernel without faults. */
void fake_reset(void);

/* The n-th object of a type, or NULL. */
struct fake_object *fake_object(uint16_t type, unsigned n);

/* Removes or duplicates an object. */
void fake_remove(struct fake_object *object);
void fake_double(const struct fake_object *object);

#endif
