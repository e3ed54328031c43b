/* What goes into a PAC interpreter and what comes out of it, as text.
 *
 * libproxy evaluates a script but tells little: a script that cannot be parsed, one that throws and one
 * that returns DIRECT look alike, and kinds of proxy that it does not know are dropped. So the script gets
 * a tail that calls its FindProxyForURL and returns what happened, hex-encoded, as the name of a proxy:
 * "PROXY r44..." for a text, e for an exception, n for a value that is no text. Without such a name in
 * libproxy's answer the tail has not run, so the script could not be parsed or has no FindProxyForURL.
 *
 * libproxy's settings are asked with its debug output on, which names the configuration it found before
 * anything is done with it: so a script is fetched and run by us, not by libproxy.
 */
#ifndef HOST_BROKER_PROXY_PAC_SCRIPT_H
#define HOST_BROKER_PROXY_PAC_SCRIPT_H

#include <stddef.h>
#include <sys/types.h>

#include "common/os/failure.h"
#include "host-broker/proxy/proxy_list.h"

#define PAC_SCRIPT_MAX (100 * 1024 - 1) /* libproxy takes no larger file; with the tail */

/* Writes the script with the tail. What is no UTF-8 is taken as Latin-1, as browsers do. The length, or
 * -EINVAL or -EFBIG with a reason. */
ssize_t pac_script_wrap(char out[PAC_SCRIPT_MAX], const char *script, size_t length,
                        struct failure *why);

/* How the evaluation ended. */
enum pac_script_end {
    PAC_SCRIPT_ABSENT, /* the tail has not run */
    PAC_SCRIPT_RESULT, /* text: what the script returned */
    PAC_SCRIPT_THREW,  /* text: the exception */
    PAC_SCRIPT_NO_TEXT /* text: the type of what it returned */
};

/* Reads the first proxy of libproxy's answer. `text` gets at most PROXY_RESULT_MAX characters; what is
 * longer is PAC_SCRIPT_NO_TEXT. */
enum pac_script_end pac_script_read(const char *proxy, char text[PROXY_RESULT_MAX + 1]);

/* Reads libproxy's debug output: the script's URL when the settings name a PAC script (for automatic
 * discovery that of WPAD's well-known name), else an empty text. */
void pac_settings_read(const char *output, char script[PROXY_SCRIPT_URL_MAX + 1]);

#endif
