/* The text that goes to libproxy's PAC interpreter, and the text that comes back.
 *
 * libproxy does not report errors of a script: one that cannot be parsed, one that throws and one
 * that returns DIRECT give the same answer, and kinds of proxy that libproxy does not know are
 * dropped. So a tail is appended to the script. It calls FindProxyForURL and returns the outcome in
 * hexadecimal, as the host of a proxy: "PROXY r44..." for a string, e for an exception, n for a
 * value that is no string. If libproxy's answer has no such host, the tail has not run: the script
 * cannot be parsed or has no FindProxyForURL.
 *
 * The desktop's settings are read from libproxy's debug output, which names the configuration that
 * it found before it is used. So the broker downloads and runs the script, not libproxy.
 */
#ifndef HOST_BROKER_PROXY_PAC_SCRIPT_INTERNAL_H
#define HOST_BROKER_PROXY_PAC_SCRIPT_INTERNAL_H

#include <stddef.h>
#include <sys/types.h>

#include "common/os/failure.h"
#include "host-broker/proxy/proxy_list.h"

#define PAC_SCRIPT_MAX (100 * 1024 - 1) /* with the tail: the largest file that libproxy reads */

/* Writes the script and the tail. A script that is not UTF-8 is read as Latin-1, as browsers do.
 * The length, or -EINVAL or -EFBIG with a reason. */
ssize_t pac_script_wrap(char out[PAC_SCRIPT_MAX], const char *script, size_t length,
                        struct failure *why);

/* How the evaluation ended. */
enum pac_script_end {
    PAC_SCRIPT_ABSENT, /* the tail has not run */
    PAC_SCRIPT_RESULT, /* text: the script's result */
    PAC_SCRIPT_THREW,  /* text: the exception */
    PAC_SCRIPT_NO_TEXT /* text: the type of the result, which is no string */
};

/* Reads the first proxy of libproxy's answer. A text longer than PROXY_RESULT_MAX characters is
 * PAC_SCRIPT_NO_TEXT. */
enum pac_script_end pac_script_read(const char *proxy, char text[PROXY_RESULT_MAX + 1]);

/* Reads libproxy's debug output: the script's URL when the settings name a PAC script (for
 * automatic discovery the well-known URL of WPAD), else "". */
void pac_settings_read(const char *output, char script[PROXY_SCRIPT_URL_MAX + 1]);

#endif
