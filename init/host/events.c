/* Writes the members of each event. */
#include "init/host/events.h"

#include <sys/wait.h>

int event_hello(struct control *control)
{
    struct json_writer *writer = control_event_begin(control, "hello", CONTROL_MUST);

    json_member_int(writer, "protocol", PROTOCOL_VERSION);
    json_member_string(writer, "version", CODEV_VERSION);
    return control_event_end(control);
}

int event_stage(struct control *control, const char *stage, int64_t nanoseconds)
{
    struct json_writer *writer = control_event_begin(control, "stage", CONTROL_MUST);

    json_member_string(writer, "name", stage);
    json_write_name(writer, "ms");
    json_write_ms(writer, nanoseconds);
    return control_event_end(control);
}

static void write_checks(struct json_writer *writer, const struct check_report *report)
{
    json_write_name(writer, "checks");
    json_write_array_begin(writer);
    for (unsigned number = 0; number < report->count; number++) {
        const struct check_result *check = &report->checks[number];
        json_write_object_begin(writer);
        json_member_string(writer, "name", check->name);
        json_member_bool(writer, "ok", check->ok);
        if (check->detail[0] != '\0')
            json_member_string(writer, "detail", check->detail);
        json_write_object_end(writer);
    }
    json_write_array_end(writer);
}

int event_ready(struct control *control, int64_t boot_ns, const struct boot_way_in *way_in,
                const struct check_report *report)
{
    struct json_writer *writer = control_event_begin(control, "ready", CONTROL_MUST);
    char text[ENDPOINT_TEXT_MAX];

    json_write_name(writer, "boot_ms");
    json_write_ms(writer, boot_ns);
    json_write_name(writer, "way_in");
    if (way_in->present) {
        endpoint_format(&way_in->listen, text);
        json_write_string(writer, text);
    } else {
        json_write_null(writer);
    }
    write_checks(writer, report);
    return control_event_end(control);
}

int event_failed(struct control *control, const char *stage, const char *error)
{
    struct json_writer *writer = control_event_begin(control, "failed", CONTROL_MUST);

    json_member_string(writer, "stage", stage);
    json_member_string(writer, "error", error);
    return control_event_end(control);
}

int event_warning(struct control *control, const char *text)
{
    struct json_writer *writer = control_event_begin(control, "warning", CONTROL_MAY_LOSE);

    json_member_string(writer, "text", text);
    return control_event_end(control);
}

int event_firewall(struct control *control, const char *state)
{
    struct json_writer *writer = control_event_begin(control, "firewall", CONTROL_MUST);

    json_member_string(writer, "state", state);
    return control_event_end(control);
}

int event_dropped(struct control *control, int64_t lines)
{
    struct json_writer *writer = control_event_begin(control, "dropped", CONTROL_MAY_LOSE);

    json_member_int(writer, "lines", lines);
    return control_event_end(control);
}

int event_input_credit(struct control *control, int64_t bytes)
{
    struct json_writer *writer = control_event_begin(control, "credit", CONTROL_MAY_LOSE);

    json_member_string(writer, "stream", "stdin");
    json_member_int(writer, "bytes", bytes);
    return control_event_end(control);
}

int event_time(struct control *control, int64_t number)
{
    struct json_writer *writer = control_event_begin(control, "time", CONTROL_MAY_LOSE);

    json_member_int(writer, "number", number);
    return control_event_end(control);
}

int event_exit(struct control *control, int wait_status)
{
    struct json_writer *writer = control_event_begin(control, "exit", CONTROL_MUST);

    if (WIFSIGNALED(wait_status))
        json_member_int(writer, "signal", WTERMSIG(wait_status));
    else
        json_member_int(writer, "code", WEXITSTATUS(wait_status));
    return control_event_end(control);
}
