/* Messages for a person at the machine's console: failures that cannot be reported to a host. */
#ifndef INIT_SYSTEM_CONSOLE_H
#define INIT_SYSTEM_CONSOLE_H

/* Writes "codev-init: TEXT" as one line to the console, or to standard error if there is none. */
void console_write(const char *text);

/* From now on standard error only: in WSL the console belongs to all distributions. */
void console_is_stderr(void);

#endif
