/* Answers one question about proxies: see pac_resolver.h. The process ends afterwards, so nothing is
 * freed; time and memory are watched from outside.
 *
 * libproxy is used twice, in two processes: where the question is how the desktop is set, a child without
 * network asks it and is read through a pipe; a script that was named is then fetched by us and evaluated
 * by libproxy, whose settings are the environment that we make: pac+file: of a file in memory.
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
#include "host-broker/base/memory.h"
#include "host-broker/proxy/pac_script.h"

#define SETTINGS_OUTPUT_MAX (64 * 1024)
#define SETTINGS_MEMORY_MAX                                                                        \
    (1024L * 1024 * 1024) /* of address space: too little to run scripts in */
#define RESULT_PREFIX "codev-proxy "

static void refuse(struct pac_reply *reply, enum pac_verdict verdict, const char *text)
{
    reply->verdict = verdict;
    snprintf(reply->text, sizeof(reply->text), "%s", text);
}

/* In the child: what libproxy says goes to the pipe, with its debug output. */
static void tell_settings(const char *url, int out)
{
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    setenv("_PX_DEBUG", "1", 1);
    pxProxyFactory *factory = px_proxy_factory_new();
    if (factory == NULL || pac_filter_settings() < 0)
        _exit(1);
#ifndef __SANITIZE_ADDRESS__ /* its shadow takes terabytes */
    struct rlimit memory = {SETTINGS_MEMORY_MAX, SETTINGS_MEMORY_MAX};
    (void)setrlimit(RLIMIT_AS, &memory);
#endif
    char **proxies = px_proxy_factory_get_proxies(factory, url);
    for (size_t i = 0; proxies != NULL && proxies[i] != NULL; i++)
        dprintf(STDOUT_FILENO, RESULT_PREFIX "%s\n", proxies[i]);
    _exit(0);
}

/* libproxy's output with a NUL; its length or a negative errno. */
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

/* The lines of results, without their prefix. */
static void collect_proxies(const char *output, struct pac_reply *reply)
{
    size_t used = 0;
    reply->verdict = PAC_PROXIES;
    reply->text[0] = '\0';
    for (const char *at = output; (at = strstr(at, RESULT_PREFIX)) != NULL;) {
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

/* libproxy evaluates a wrapped script that lies in memory. */
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
    setenv("JSC_useJIT", "0", 1); /* less to attack; these scripts are short */
    pxProxyFactory *factory = px_proxy_factory_new();
    char **proxies = factory != NULL ? px_proxy_factory_get_proxies(factory, url) : NULL;
    return proxies != NULL && proxies[0] != NULL ? pac_script_read(proxies[0], text)
                                                 : PAC_SCRIPT_ABSENT;
}

/* Tells a script without FindProxyForURL from a libproxy that runs none. */
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
        refuse(reply, PAC_FAILED, "scripts cannot be confined on this system");
        return;
    }
    switch (evaluate(wrapped, length, url, text)) {
    case PAC_SCRIPT_RESULT:
        refuse(reply, PAC_RESULT, text);
        break;
    case PAC_SCRIPT_THREW:
        reply->verdict = PAC_UNAVAILABLE;
        snprintf(reply->text, sizeof(reply->text), "the script threw %.200s", text);
        break;
    case PAC_SCRIPT_NO_TEXT:
        reply->verdict = PAC_UNAVAILABLE;
        snprintf(reply->text, sizeof(reply->text), "the script returned no list but %.200s", text);
        break;
    case PAC_SCRIPT_ABSENT:
        if (has_interpreter(url))
            refuse(reply, PAC_UNAVAILABLE, "the script cannot be parsed or has no FindProxyForURL");
        else
            refuse(reply, PAC_FAILED,
                   "libproxy runs no PAC scripts here (Debian: libproxy1-plugin-webkit)");
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
        refuse(reply, PAC_FAILED, "libcurl cannot be started");
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
