/* Appends the tail to PAC scripts, and reads libproxy's answers and debug output. */
#include "host-broker/proxy/pac_script_internal.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/text/utf8.h"

#define ANSWER_PREFIX "http://"
#define WPAD_URL "http://wpad/wpad.dat"

/* It returns one character more than PROXY_RESULT_MAX, so that a longer result is recognized. */
static const char tail[] =
    "\n;(function(){var d=0,f=FindProxyForURL,x=function(t,s){var "
    "o='',i,c;s=String(s).slice(0,2049);"
    "for(i=0;i<s.length;i++){c=s.charCodeAt(i);c=c>126?63:c;o+=(c<16?'0':'')+c.toString(16)}"
    "return 'PROXY '+t+o};FindProxyForURL=function(u,h){var r;if(d)return f(u,h);d=1;"
    "try{r=f(u,h)}catch(e){return x('e',e)}return typeof r==='string'?x('r',r):x('n',typeof "
    "r)}})();\n";

static bool is_utf8(const char *text, size_t length)
{
    uint32_t code;
    for (size_t i = 0, taken; i < length; i += taken) {
        taken = utf8_decode(text + i, length - i, &code);
        if (taken == 0)
            return false;
    }
    return true;
}

ssize_t pac_script_wrap(char out[PAC_SCRIPT_MAX], const char *script, size_t length,
                        struct failure *why)
{
    const size_t room = PAC_SCRIPT_MAX - (sizeof(tail) - 1);
    bool utf8 = is_utf8(script, length);
    size_t used = 0;
    if (length > 0 && memchr(script, '\0', length))
        return failure_set(why, EINVAL, "the script contains a NUL byte");
    for (size_t i = 0; i < length; i++) {
        char bytes[UTF8_LENGTH_MAX] = {script[i]};
        size_t count = utf8 ? 1 : utf8_encode(bytes, (unsigned char)script[i]);
        if (used + count > room)
            return failure_set(why, EFBIG, "the script is larger than %zu bytes", room);
        memcpy(out + used, bytes, count);
        used += count;
    }
    memcpy(out + used, tail, sizeof(tail) - 1);
    return (ssize_t)(used + sizeof(tail) - 1);
}

/* Decodes up to the first character that is no digit. False when the text is too long. */
static bool decode_hex(const char *hex, char text[PROXY_RESULT_MAX + 1])
{
    size_t length = 0;
    for (; ascii_hex_value(hex[0]) >= 0 && ascii_hex_value(hex[1]) >= 0; hex += 2) {
        if (length == PROXY_RESULT_MAX)
            return false;
        int byte = ascii_hex_value(hex[0]) << 4 | ascii_hex_value(hex[1]);
        text[length++] =
            byte < ' ' || byte > '~' ? ' ' : (char)byte; /* the log may be shown on a terminal */
    }
    text[length] = '\0';
    return true;
}

enum pac_script_end pac_script_read(const char *proxy, char text[PROXY_RESULT_MAX + 1])
{
    text[0] = '\0';
    if (strncmp(proxy, ANSWER_PREFIX, strlen(ANSWER_PREFIX)) != 0)
        return PAC_SCRIPT_ABSENT;
    proxy += strlen(ANSWER_PREFIX);
    if (*proxy != 'r' && *proxy != 'e' && *proxy != 'n')
        return PAC_SCRIPT_ABSENT;
    if (!decode_hex(proxy + 1, text)) {
        snprintf(text, PROXY_RESULT_MAX + 1, "more than %d characters", PROXY_RESULT_MAX);
        return PAC_SCRIPT_NO_TEXT;
    }
    if (*proxy == 'e')
        return PAC_SCRIPT_THREW;
    return *proxy == 'r' ? PAC_SCRIPT_RESULT : PAC_SCRIPT_NO_TEXT;
}

void pac_settings_read(const char *output, char script[PROXY_SCRIPT_URL_MAX + 1])
{
    static const char heading[] = "Config is:";
    const char *line = strstr(output, heading);
    script[0] = '\0';
    if (!line || !(line = strchr(line, '\n')) || line[1] != '\t')
        return;
    line += 2;
    size_t length = strcspn(line, "\r\n");
    if (length >= 4 && strncmp(line, "pac+", 4) == 0 && length - 4 <= PROXY_SCRIPT_URL_MAX) {
        memcpy(script, line + 4, length - 4);
        script[length - 4] = '\0';
    } else if (length >= 5 && strncmp(line, "wpad:", 5) == 0) {
        memcpy(script, WPAD_URL, sizeof(WPAD_URL));
    }
}
