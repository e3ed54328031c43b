/* Collects certificate authorities into one file in memory. */
#include "host-broker/keys/trust.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <curl/curl.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "common/os/memory.h"
#include "common/text/encoding.h"

#define PEM_BEGIN "-----BEGIN CERTIFICATE-----"
#define PEM_END "-----END CERTIFICATE-----"
#define CERTIFICATE_MAX (256 * 1024) /* characters of one certificate */
#define CERTIFICATES_COMPARED 4096

/* The store that is being collected. Sources overlap (a folder often holds links beside a bundle),
 * and libcurl would parse each copy: a certificate whose hash was seen before is left out. */
struct collection {
    int fd;
    size_t seen_count;
    uint64_t seen[CERTIFICATES_COMPARED]; /* further ones are not compared */
};

/* FNV-1a, 64 bits. A collision would leave out a certificate, never add one. */
static uint64_t hash_bytes(const char *bytes, size_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static bool is_new(struct collection *out, const char *bytes, size_t length)
{
    uint64_t hash = hash_bytes(bytes, length);
    for (size_t i = 0; i < out->seen_count; i++)
        if (out->seen[i] == hash)
            return false;
    if (out->seen_count < CERTIFICATES_COMPARED)
        out->seen[out->seen_count++] = hash;
    return true;
}

/* Accepts base64 that decodes to the beginning of a DER sequence, because one broken block makes
 * libcurl refuse the whole store. 1: a new certificate, 0: one that is there already, else a
 * negative errno. */
static int examine(struct collection *out, const char *body, size_t length)
{
    if (length > CERTIFICATE_MAX)
        return -EBADMSG;
    CLEANUP_FREE char *text = malloc(length + 1);
    if (!text)
        return -ENOMEM;
    size_t used = 0;
    for (size_t i = 0; i < length; i++)
        if (!strchr(" \t\r\n", body[i]))
            text[used++] = body[i];
    int decoded = base64_decode(text, used, text, used);
    if (decoded < 3 || (unsigned char)text[0] != 0x30)
        return -EBADMSG;
    return is_new(out, text, (size_t)decoded);
}

static int write_block(int fd, const char *body, size_t length)
{
    static const char begin[] = PEM_BEGIN, end[] = PEM_END "\n";
    int result = io_write_full(fd, begin, sizeof(begin) - 1);
    if (result == 0)
        result = io_write_full(fd, body, length);
    if (result == 0)
        result = io_write_full(fd, end, sizeof(end) - 1);
    return result;
}

/* The number of certificates in a NUL-terminated text, or a negative errno. */
static int copy_certificates(struct collection *out, const char *text)
{
    int count = 0;
    for (const char *begin = text; (begin = strstr(begin, PEM_BEGIN));) {
        begin += strlen(PEM_BEGIN);
        const char *end = strstr(begin, PEM_END);
        if (!end)
            return -EBADMSG;
        int result = examine(out, begin, (size_t)(end - begin));
        if (result > 0)
            result = write_block(out->fd, begin, (size_t)(end - begin));
        if (result < 0)
            return result;
        count++;
        begin = end;
    }
    return count;
}

/* Adds a file's certificates: their number, or a negative errno. */
static int add_file(struct collection *out, int directory, const char *path, struct failure *why)
{
    struct stat info;
    CLEANUP_FD int fd = io_open_regular(directory, path, 0, &info);
    if (fd < 0 && fd != -EINVAL)
        return failure_errno(why, -fd, "read certificates from %s", path);
    if (fd < 0 || info.st_size > TRUST_FILE_MAX)
        return failure_set(why, EINVAL,
                           "read certificates from %s: not a regular file of at most %d bytes",
                           path, TRUST_FILE_MAX);
    CLEANUP_FREE char *text = calloc(1, (size_t)info.st_size + 1);
    if (!text)
        return failure_set(why, ENOMEM, "read certificates from %s: out of memory", path);
    ssize_t length = io_read_full(fd, text, (size_t)info.st_size);
    int count = length < 0 ? (int)length : copy_certificates(out, text);
    if (count == -EBADMSG)
        return failure_set(why, EBADMSG, "read certificates from %s: a broken certificate", path);
    if (count < 0)
        return failure_errno(why, -count, "read certificates from %s", path);
    return count;
}

/* Removes what a broken source has added: a source is taken as a whole or not at all. */
static void take_back(struct collection *out, off_t length, size_t seen_count)
{
    if (ftruncate(out->fd, length) == 0)
        (void)lseek(out->fd, length, SEEK_SET);
    out->seen_count = seen_count;
}

/* Adds the certificates of a folder; other files (keys, revocation lists, dangling links) are
 * skipped. */
static int add_folder(struct collection *out, const char *path, struct failure *why)
{
    DIR *folder = opendir(path);
    if (!folder)
        return failure_errno(why, errno, "read certificates from %s", path);
    int total = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        off_t before = lseek(out->fd, 0, SEEK_CUR);
        size_t seen = out->seen_count;
        int count = entry->d_name[0] == '.' ? 0 : add_file(out, dirfd(folder), entry->d_name, NULL);
        if (count < 0)
            take_back(out, before, seen);
        else
            total += count;
    }
    closedir(folder);
    return total;
}

/* The store that libcurl was built with. Its folder is read only if there is no file: usually both
 * hold the same certificates. */
static void add_system_store(struct collection *out)
{
    CURL *easy = curl_easy_init();
    char *file = NULL, *folder = NULL;
    if (easy) {
        (void)curl_easy_getinfo(easy, CURLINFO_CAINFO, &file);
        (void)curl_easy_getinfo(easy, CURLINFO_CAPATH, &folder);
    }
    int count = file ? add_file(out, AT_FDCWD, file, NULL) : -ENOENT;
    if (count <= 0 && folder)
        (void)add_folder(out, folder, NULL);
    curl_easy_cleanup(easy);
}

static int add_certificates(struct collection *out, const char *path, struct failure *why)
{
    return add_file(out, AT_FDCWD, path, why);
}

/* Adds what a variable of the environment names; the first that fails becomes the warning. */
static void add_named(struct collection *out, const char *variable, const char *path,
                      int (*add)(struct collection *, const char *, struct failure *),
                      struct failure *warning)
{
    struct failure why;
    off_t before = lseek(out->fd, 0, SEEK_CUR);
    size_t seen = out->seen_count;
    if (add(out, path, &why) >= 0)
        return;
    take_back(out, before, seen);
    if (warning->text[0] == '\0')
        failure_set(warning, 0, "%s: %s", variable, why.text);
}

/* The sources that the environment names. A mistake there neither keeps the broker from starting
 * nor the other sources from being used. */
static void add_environment(struct collection *out, struct failure *warning)
{
    static const char *const files[] = {"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"};
    const char *folders = getenv("SSL_CERT_DIR");
    char folder[PATH_MAX];
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
        const char *path = getenv(files[i]);
        if (path && *path != '\0')
            add_named(out, files[i], path, add_certificates, warning);
    }
    while (folders && io_next_path(&folders, folder))
        add_named(out, "SSL_CERT_DIR", folder, add_folder, warning);
}

static int collect(struct collection *out, const char *const *ca_files, size_t count,
                   struct failure *warning, struct failure *why)
{
    add_system_store(out);
    add_environment(out, warning);
    for (size_t i = 0; i < count; i++) {
        int added = add_file(out, AT_FDCWD, ca_files[i], why);
        if (added < 0)
            return added;
        if (added == 0)
            return failure_set(why, EBADMSG, "%s holds no certificate", ca_files[i]);
    }
    return 0;
}

void trust_init(struct trust *trust)
{
    *trust = (struct trust){.fd = -1, .previous_fd = -1};
}

int trust_load(struct trust *trust, const char *const *ca_files, size_t count,
               struct failure *warning, struct failure *why)
{
    warning->text[0] = '\0';
    CLEANUP_FD int fd = memory_file_open("codev-broker-trust", why);
    if (fd < 0)
        return fd;
    static struct collection collection;
    collection.fd = fd;
    collection.seen_count = 0;
    int result = collect(&collection, ca_files, count, warning, why);
    if (result < 0)
        return result;
    memory_file_seal(fd);
    /* The old store is still open, so the new path differs and libcurl does not take the cached
     * store. */
    fd_close(&trust->previous_fd);
    trust->previous_fd = trust->fd;
    trust->fd = fd_steal(&fd);
    trust->certificates = collection.seen_count;
    memory_file_path(trust->fd, trust->path);
    return 0;
}

void trust_close(struct trust *trust)
{
    fd_close(&trust->fd);
    fd_close(&trust->previous_fd);
}
