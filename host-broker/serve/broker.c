/* The login as last reported, and warnings. */
#include "host-broker/serve/broker.h"

#include <stdarg.h>
#include <stdio.h>

void broker_warn(struct broker *broker, const char *format, ...)
{
    char text[FAILURE_TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    fprintf(stderr, "codev-broker: warning: %s\n", text);
    access_log_event(&broker->log, "warning", "text", text);
}

bool broker_logged_in(struct broker *broker, bool always)
{
    struct failure why;
    if (!always && broker->login_seen != 0 && broker->login_seen == broker->loop.now)
        return broker->logged_in;
    broker->login_seen = broker->loop.now;
    bool now = credential_refresh(&broker->credential, always, &why);
    if (now == broker->logged_in)
        return now;
    broker->logged_in = now;
    if (!now)
        broker_warn(broker, "no gateway login: %s", why.text);
    access_log_event(&broker->log, "login", "state", now ? "present" : "missing");
    return now;
}
