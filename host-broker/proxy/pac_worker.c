/* Answers one question about proxies in a worker. The process ends afterwards, so nothing is freed.
 * The resolver's main loop limits its time and memory.
 *
 * libproxy is used twice, in two processes. For the desktop's settings a child without network
 * calls it and writes the answer to a pipe. A PAC script is downloaded by pac_fetch and then run by
 * libproxy, for which the environment says http_proxy=pac+file: with the name of a file in memory.
 */
#include "host-broker/proxy/pac_resolver.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <curl/curl.h>
#include <proxy.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "common/os/memory.h"
#include "host-broker/proxy/pac_internal.h"
#include "host-broker/proxy/pac_script_internal.h"

#define SETTINGS_OUTPUT_MAX (64 * 1024)
/* Address space: too little to run scripts in. */
#define SETTINGS_MEMORY_MAX (1024L * 1024 * 1024)
#define RESULT_PREFIX "codev-proxy "

static void refuse(struct pac_reply *reply, enum pac_verdict verdict, const char *text)
{
    reply->verdict = verdict;
    snprintf(reply->text, sizeof(reply->text), "%s", text);
}

/* In the child: writes libproxy's answer and debug output to the pipe. */
static void tell_settings(const char *url, int out)
{
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    setenv("_PX_DEBUG", "1", 1);
    pxProxyFactory *factory = px_proxy_factory_new();
    if (!factory || pac_filter_settings() < 0)
        _exit(1);
#ifndef __SANITIZE_ADDRESS__ /* its shadow memory takes terabytes */
    struct rlimit memory = {SETTINGS_MEMORY_MAX, SETTINGS_MEMORY_MAX};
    (void)setrlimit(RLIMIT_AS, &memory);
#endif
    char **proxies = px_proxy_factory_get_proxies(factory, url);
    for (size_t i = 0; proxies && proxies[i]; i++)
        dprintf(STDOUT_FILENO, RESULT_PREFIX "%s\n", proxies[i]);
    _exit(0);
}

/* Reads libproxy's output and adds a NUL. Its length, or a negative errno. */
static ssize_t read_settings(const char *url, char out[SETTINGS_OUTPUT_MAX])
{
    int ends[2];
    if (pipe(ends) < 0)
        return -errno;
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        tell_settings(url, ends[1]);
    }
    close(ends[1]);
    ssize_t length = child < 0 ? -errno : io_read_full(ends[0], out, SETTINGS_OUTPUT_MAX - 1);
    close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    out[length > 0 ? length : 0] = '\0';
    return length;
}

/* Copies the lines with results, without their prefix. */
static void collect_proxies(const char *output, struct pac_reply *reply)
{
    size_t used = 0;
    reply->verdict = PAC_PROXIES;
    reply->text[0] = '\0';
    for (const char *at = output; (at = strstr(at, RESULT_PREFIX));) {
        at += strlen(RESULT_PREFIX);
        size_t length = strcspn(at, "\n") + 1;
        if (used + length >= sizeof(reply->text))
            break;
        memcpy(reply->text + used, at, length);
        used += length;
        reply->text[used] = '\0';
    }
    if (used == 0)
        refuse(reply, PAC_FAILED, "libproxy gave no answer");
}

/* Runs a wrapped script by libproxy, from a file in memory. */
static enum pac_script_end evaluate(const char *script, size_t length, const char *url,
                                    char text[PROXY_RESULT_MAX + 1])
{
    char path[MEMORY_FILE_PATH_MAX], setting[64];
    text[0] = '\0';
    int fd = memory_file_open("pac", NULL);
    if (fd < 0 || io_write_full(fd, script, length) < 0)
        return PAC_SCRIPT_ABSENT;
    memory_file_path(fd, path);
    snprintf(setting, sizeof(setting), "pac+file://%s", path);
    clearenv();
    setenv("http_proxy", setting, 1);
    setenv("JSC_useJIT", "0", 1); /* a smaller attack surface; these scripts are short */
    pxProxyFactory *factory = px_proxy_factory_new();
    char **proxies = factory ? px_proxy_factory_get_proxies(factory, url) : NULL;
    return proxies && proxies[0] ? pac_script_read(proxies[0], text) : PAC_SCRIPT_ABSENT;
}

/* Distinguishes a script without FindProxyForURL from a libproxy without an interpreter. */
static bool has_interpreter(const char *url)
{
    static const char script[] = "function FindProxyForURL(u, h) { return \"DIRECT\"; }";
    static char wrapped[PAC_SCRIPT_MAX], text[PROXY_RESULT_MAX + 1];
    ssize_t length = pac_script_wrap(wrapped, script, sizeof(script) - 1, NULL);
    return evaluate(wrapped, (size_t)length, url, text) == PAC_SCRIPT_RESULT;
}

static void run_script(const char *wrapped, size_t length, const char *url, struct pac_reply *reply)
{
    static char text[PROXY_RESULT_MAX + 1];
    if (pac_filter_script() < 0) {
        refuse(reply, PAC_FAILED, "the system call filter for PAC scripts could not be loaded");
        return;
    }
    switch (evaluate(wrapped, length, url, text)) {
    case PAC_SCRIPT_RESULT:
        refuse(reply, PAC_RESULT, text);
        break;
    case PAC_SCRIPT_THREW:
        reply->verdict = PAC_UNAVAILABLE;
        snprintf(reply->text, sizeof(reply->text), "the script threw an exception: %.200s", text);
        break;
    case PAC_SCRIPT_NO_TEXT:
        reply->verdict = PAC_UNAVAILABLE;
        snprintf(reply->text, sizeof(reply->text), "the script returned no string but %.200s",
                 text);
        break;
    case PAC_SCRIPT_ABSENT:
        if (has_interpreter(url))
            refuse(reply, PAC_UNAVAILABLE,
                   "the script cannot be parsed or has no function FindProxyForURL");
        else
            refuse(reply, PAC_FAILED,
                   "libproxy has no interpreter for PAC scripts: install it (Debian: "
                   "libproxy1-plugin-webkit)");
        break;
    }
}

void pac_worker_answer(const struct pac_question *question, char *const *ca_files,
                       struct pac_reply *reply)
{
    static char script_url[PROXY_SCRIPT_URL_MAX + 1], script[PAC_SCRIPT_MAX],
        wrapped[PAC_SCRIPT_MAX], output[SETTINGS_OUTPUT_MAX];
    struct failure why;
    snprintf(script_url, sizeof(script_url), "%s", question->script);
    if (script_url[0] == '\0') {
        if (read_settings(question->url, output) < 0)
            output[0] = '\0';
        pac_settings_read(output, script_url);
    }
    if (script_url[0] == '\0') {
        collect_proxies(output, reply);
        return;
    }
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        refuse(reply, PAC_FAILED, "libcurl could not be initialized");
        return;
    }
    ssize_t length = pac_fetch(script_url, ca_files, script, sizeof(script), &why);
    if (length >= 0)
        length = pac_script_wrap(wrapped, script, (size_t)length, &why);
    if (length < 0)
        refuse(reply, PAC_UNAVAILABLE, why.text);
    else
        run_script(wrapped, (size_t)length, question->url, reply);
}
