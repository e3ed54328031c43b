/* Downloads a PAC script by libcurl, never through a proxy, with limits on time and size. It trusts
 * the same certificates as for upstreams. */
#include "host-broker/proxy/pac_internal.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <curl/curl.h>

#include "host-broker/keys/trust.h"

#define REDIRECTS_MAX 5L

struct fetch {
    char *out;
    size_t length, size;
    bool too_large;
};

static size_t on_content(char *content, size_t size, size_t count, void *user)
{
    struct fetch *fetch = user;
    size_t length = size * count;
    if (length > fetch->size - fetch->length) {
        fetch->too_large = true;
        return CURL_WRITEFUNC_ERROR;
    }
    memcpy(fetch->out + fetch->length, content, length);
    fetch->length += length;
    return length;
}

static size_t count_files(char *const *files)
{
    size_t count = 0;
    while (files[count])
        count++;
    return count;
}

static CURLcode set_up(CURL *easy, const char *url, struct fetch *fetch, const struct trust *trust)
{
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_content);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, fetch);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https,file");
    curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(easy, CURLOPT_MAXREDIRS, REDIRECTS_MAX);
    curl_easy_setopt(easy, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)PAC_FETCH_TIMEOUT_MS);
    curl_easy_setopt(easy, CURLOPT_CAINFO, trust->path);
    curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    return curl_easy_setopt(easy, CURLOPT_URL, url);
}

ssize_t pac_fetch(const char *url, char *const *ca_files, char *out, size_t size,
                  struct failure *why)
{
    char words[CURL_ERROR_SIZE] = "";
    struct failure warning;
    struct trust trust;
    struct fetch fetch = {.out = out, .size = size};
    trust_init(&trust);
    int result =
        trust_load(&trust, (const char *const *)ca_files, count_files(ca_files), &warning, why);
    if (result < 0)
        return result;
    CURL *easy = curl_easy_init();
    if (!easy)
        return failure_set(why, ENOMEM, "start libcurl");
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, words);
    CURLcode code = set_up(easy, url, &fetch, &trust);
    if (code == CURLE_OK)
        code = curl_easy_perform(easy);
    curl_easy_cleanup(easy);
    trust_close(&trust);
    if (fetch.too_large)
        return failure_set(why, EFBIG, "the script is larger than %zu bytes", size);
    if (code != CURLE_OK)
        return failure_set(why, EIO, "the script cannot be fetched: %.200s",
                           words[0] != '\0' ? words : curl_easy_strerror(code));
    return (ssize_t)fetch.length;
}
