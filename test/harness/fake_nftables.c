/* A fake of the kernel's nf_tables. Answers are queued during sendto(2), as in the kernel. */
#include "test/harness/fake_nftables.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#define QUEUE_MAX 64
#define DATAGRAM_MAX 1024

struct fake_kernel fake;

static struct datagram {
    size_t length;
    uint32_t from;
    _Alignas(4) char bytes[DATAGRAM_MAX];
} queue[QUEUE_MAX];
static unsigned queued, calls;
static bool loss_to_tell;

void fake_reset(void)
{
    memset(&fake, 0, sizeof(fake));
    fake.generation = 1;
    queued = calls = 0;
    loss_to_tell = false;
}

static void enqueue(const void *bytes, size_t length, uint32_t from)
{
    if (from == 0 && fake.answers_before_loss > 0) {
        fake.answers_before_loss--;
    } else if (from == 0 && fake.lost_answers > 0) {
        fake.lost_answers--;
        loss_to_tell = true;
        return;
    } else if (from == 0 && fake.silent_losses > 0) {
        fake.silent_losses--;
        return;
    }
    if (queued == QUEUE_MAX || length > DATAGRAM_MAX)
        abort();
    struct datagram *datagram = &queue[queued++];
    datagram->length = length;
    datagram->from = from;
    memcpy(datagram->bytes, bytes, length);
}

static struct nlmsghdr *start(char *bytes, uint16_t type, uint16_t flags, uint32_t sequence)
{
    memset(bytes, 0, DATAGRAM_MAX);
    struct nlmsghdr *header = mnl_nlmsg_put_header(bytes);
    header->nlmsg_type = type;
    header->nlmsg_flags = flags;
    header->nlmsg_seq = sequence;
    header->nlmsg_pid = FAKE_PORT;
    return header;
}

static void answer_error(const struct nlmsghdr *request, int error)
{
    _Alignas(4) char bytes[DATAGRAM_MAX];
    struct nlmsghdr *header = start(bytes, NLMSG_ERROR, 0, request->nlmsg_seq);
    struct nlmsgerr *body = mnl_nlmsg_put_extra_header(header, sizeof(*body));
    body->error = -error;
    body->msg = *request;
    if (fake.forged > 0) {
        fake.forged--;
        body->error = -EIO;
        enqueue(bytes, header->nlmsg_len, 7777);
        body->error = -error;
    }
    enqueue(bytes, header->nlmsg_len, 0);
}

static bool asks_for_owner(const struct nlmsghdr *message)
{
    struct nlattr *attribute;
    mnl_attr_for_each(attribute, message, sizeof(struct nfgenmsg))
    {
        if (mnl_attr_get_type(attribute) == NFTA_TABLE_FLAGS)
            return (ntohl(mnl_attr_get_u32(attribute)) & NFT_TABLE_F_OWNER) != 0;
    }
    return false;
}

/* The errno that refuses a message, or 0. */
static int refusal_of(const struct nlmsghdr *message)
{
    const struct fake_refusal *refusal = &fake.refusal;
    uint16_t type =
        message->nlmsg_type == NFNL_MSG_BATCH_BEGIN ? FAKE_BATCH_BEGIN : message->nlmsg_type & 0xff;
    if (type == NFT_MSG_NEWTABLE && fake.owner_error != 0 && asks_for_owner(message))
        return fake.owner_error;
    if (refusal->error == 0 || refusal->times == 0 || refusal->type != type)
        return 0;
    if (refusal->holding &&
        !memmem(message, message->nlmsg_len, refusal->holding, strlen(refusal->holding)))
        return 0;
    return refusal->error;
}

static void apply(const struct nlmsghdr *message)
{
    uint16_t type = message->nlmsg_type & 0xff;
    if (message->nlmsg_type >> 8 != NFNL_SUBSYS_NFTABLES)
        return;
    if (type == NFT_MSG_DELTABLE) {
        fake.count = 0;
        return;
    }
    struct fake_object *object = &fake.objects[fake.count++];
    object->type = type;
    object->length = message->nlmsg_len - sizeof(*message) - sizeof(struct nfgenmsg);
    memcpy(object->attributes, mnl_nlmsg_get_payload_offset(message, sizeof(struct nfgenmsg)),
           object->length);
}

static void take_batch(const struct nlmsghdr *first, int length)
{
    int left = length, refused = 0;
    const struct nlmsghdr *message;
    fake.batches++;
    for (message = first; mnl_nlmsg_ok(message, left); message = mnl_nlmsg_next(message, &left))
        refused += refusal_of(message) != 0;
    if (refused == 0 && fake.commit_error != 0)
        answer_error(first, fake.commit_error);
    for (message = first, left = length; mnl_nlmsg_ok(message, left);
         message = mnl_nlmsg_next(message, &left)) {
        int error = refusal_of(message);
        if (error != 0 || (message->nlmsg_flags & NLM_F_ACK) != 0)
            answer_error(message, error);
        if (refused == 0 && fake.commit_error == 0)
            apply(message);
    }
    if (refused > 0 && fake.refusal.times != FAKE_ALWAYS)
        fake.refusal.times--;
    if (refused == 0 && fake.commit_error == 0)
        fake.generation++;
}

static void add_be32(struct nlmsghdr *header, uint16_t type, uint32_t value)
{
    mnl_attr_put_u32(header, type, htonl(value));
}

static unsigned count_of(uint16_t type)
{
    unsigned count = 0;
    for (unsigned i = 0; i < fake.count; i++)
        count += fake.objects[i].type == type;
    return count;
}

/* The attributes that a kernel adds: handles in the middle, counts at the end. */
static void dump_object(const struct fake_object *object, uint32_t sequence, const char *family)
{
    _Alignas(4) char bytes[DATAGRAM_MAX];
    uint16_t flags = NLM_F_MULTI;
    if (fake.disturbed_dumps > 0) {
        fake.disturbed_dumps--;
        flags |= NLM_F_DUMP_INTR;
    }
    struct nlmsghdr *header =
        start(bytes, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | object->type), flags, sequence);
    struct nfgenmsg *generic = mnl_nlmsg_put_extra_header(header, sizeof(*generic));
    generic->nfgen_family = !family ? 1 : 2; /* NFPROTO_INET, NFPROTO_IPV4 */
    memcpy(mnl_nlmsg_get_payload_tail(header), object->attributes, object->length);
    header->nlmsg_len += object->length;
    if (object->type == NFT_MSG_NEWTABLE) {
        mnl_attr_put_u64(header, NFTA_TABLE_HANDLE, 1);
        add_be32(header, NFTA_TABLE_USE, count_of(NFT_MSG_NEWCHAIN) + fake.use_surplus);
        if (fake.owner_error == 0)
            add_be32(header, NFTA_TABLE_OWNER, fake.owner != 0 ? fake.owner : FAKE_PORT);
    } else if (object->type == NFT_MSG_NEWCHAIN) {
        add_be32(header, NFTA_CHAIN_FLAGS, NFT_CHAIN_BASE);
        add_be32(header, NFTA_CHAIN_USE, 1);
    } else {
        mnl_attr_put_u64(header, NFTA_RULE_HANDLE, 9);
    }
    enqueue(bytes, header->nlmsg_len, 0);
}

static void dump(const struct nlmsghdr *request, uint16_t type)
{
    _Alignas(4) char bytes[DATAGRAM_MAX];
    for (unsigned i = 0; i < fake.count; i++)
        if (fake.objects[i].type == type)
            for (int foreign = fake.foreign_tables; foreign >= 0; foreign--)
                dump_object(&fake.objects[i], request->nlmsg_seq, foreign > 0 ? "ip" : NULL);
    struct nlmsghdr *header = start(bytes, NLMSG_DONE, NLM_F_MULTI, request->nlmsg_seq);
    *(int *)mnl_nlmsg_put_extra_header(header, sizeof(int)) = 0;
    enqueue(bytes, header->nlmsg_len, 0);
}

static void answer_generation(const struct nlmsghdr *request)
{
    _Alignas(4) char bytes[DATAGRAM_MAX];
    if (fake.moving > 0) {
        fake.moving--;
        fake.generation++;
    }
    struct nlmsghdr *header =
        start(bytes, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWGEN, 0, request->nlmsg_seq);
    mnl_nlmsg_put_extra_header(header, sizeof(struct nfgenmsg));
    add_be32(header, NFTA_GEN_ID, fake.generation);
    enqueue(bytes, header->nlmsg_len, 0);
}

static bool is_interrupted(void)
{
    return fake.interrupted && ++calls % 2 == 1;
}

ssize_t __wrap_sendto(int fd, const void *bytes, size_t length, int flags,
                      const struct sockaddr *address, socklen_t address_length);
ssize_t __wrap_sendto(int fd, const void *bytes, size_t length, int flags,
                      const struct sockaddr *address, socklen_t address_length)
{
    (void)fd, (void)flags, (void)address, (void)address_length;
    if (is_interrupted()) {
        errno = EINTR;
        return -1;
    }
    _Alignas(4) char copy[8192];
    memcpy(copy, bytes, length);
    const struct nlmsghdr *message = (const struct nlmsghdr *)(const void *)copy;
    int error = message->nlmsg_type == NFNL_MSG_BATCH_BEGIN ? 0 : refusal_of(message);
    if (error != 0) {
        if (fake.refusal.times != FAKE_ALWAYS)
            fake.refusal.times--;
        answer_error(message, error);
    } else if (message->nlmsg_type == NFNL_MSG_BATCH_BEGIN) {
        take_batch(message, (int)length);
    } else if ((message->nlmsg_type & 0xff) == NFT_MSG_GETGEN) {
        answer_generation(message);
    } else {
        /* NFT_MSG_NEW... is one less than NFT_MSG_GET... */
        dump(message, (uint16_t)((message->nlmsg_type & 0xff) - 1));
    }
    return (ssize_t)length;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
    (void)fd, (void)flags;
    errno = is_interrupted() ? EINTR : loss_to_tell ? ENOBUFS : queued == 0 ? EAGAIN : 0;
    if (errno == ENOBUFS)
        loss_to_tell = false;
    if (errno != 0)
        return -1;
    size_t length = queue[0].length, room = message->msg_iov->iov_len;
    memcpy(message->msg_iov->iov_base, queue[0].bytes, length < room ? length : room);
    struct sockaddr_nl from = {.nl_family = AF_NETLINK, .nl_pid = queue[0].from};
    memcpy(message->msg_name, &from, sizeof(from));
    message->msg_namelen = sizeof(from);
    message->msg_flags = length > room ? MSG_TRUNC : 0;
    memmove(&queue[0], &queue[1], --queued * sizeof(queue[0]));
    return (ssize_t)(length < room ? length : room);
}

int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol)
{
    if (domain != AF_NETLINK)
        return __real_socket(domain, type, protocol);
    if (fake.socket_error != 0) {
        errno = fake.socket_error;
        return -1;
    }
    fake.open_sockets++;
    return open("/dev/null", O_RDWR | O_CLOEXEC);
}

int __real_mnl_socket_close(struct mnl_socket *channel);
int __wrap_mnl_socket_close(struct mnl_socket *channel);
int __wrap_mnl_socket_close(struct mnl_socket *channel)
{
    fake.open_sockets--;
    return __real_mnl_socket_close(channel);
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t length);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t length)
{
    (void)fd, (void)address, (void)length;
    return 0;
}

int __wrap_getsockname(int fd, struct sockaddr *address, socklen_t *length);
int __wrap_getsockname(int fd, struct sockaddr *address, socklen_t *length)
{
    (void)fd;
    struct sockaddr_nl own = {.nl_family = AF_NETLINK, .nl_pid = FAKE_PORT};
    memcpy(address, &own, sizeof(own));
    *length = sizeof(own);
    return 0;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t length);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
    (void)fd, (void)level, (void)name, (void)value, (void)length;
    return 0;
}

struct fake_object *fake_object(uint16_t type, unsigned n)
{
    for (unsigned i = 0; i < fake.count; i++)
        if (fake.objects[i].type == type && n-- == 0)
            return &fake.objects[i];
    return NULL;
}

void fake_remove(struct fake_object *object)
{
    struct fake_object *end = &fake.objects[fake.count--];
    memmove(object, object + 1, (size_t)((char *)end - (char *)(object + 1)));
    fake.generation++;
}

void fake_double(const struct fake_object *object)
{
    struct fake_object copy = *object;
    fake.objects[fake.count++] = copy;
    fake.generation++;
}
