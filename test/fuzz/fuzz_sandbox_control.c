/* Lines of a hostile guest: whatever it says, an event's parts stay within their bounds, credit
 * never grows beyond what was given, and text is always ended. */
#include <string.h>

#include "qemu-harness/launcher/guest/control.h"
#include "test/fuzz/fuzz.h"

static void check(const struct control *control, const struct control_event *event)
{
    FUZZ_CHECK(event->kind < EVENT_KIND_COUNT);
    FUZZ_CHECK(memchr(event->name, '\0', sizeof(event->name)));
    FUZZ_CHECK(memchr(event->text, '\0', sizeof(event->text)));
    FUZZ_CHECK(event->length <= CONTROL_DATA_MAX);
    FUZZ_CHECK(event->ms >= 0 && event->ms < 1e9);
    FUZZ_CHECK(control->input_credit <= CONTROL_CREDIT_INITIAL);
    FUZZ_CHECK(!memchr(event->line, '\n', event->line_length));
    if (event->kind == EVENT_OUTPUT)
        FUZZ_CHECK(event->stream < STREAM_COUNT);
    if (event->kind == EVENT_EXIT)
        FUZZ_CHECK(event->number >= (event->by_signal ? 1 : 0) && event->number <= 255);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct control control;
    static struct control_event event;
    struct failure why;
    size_t room;
    if (!control.out && control_init(&control, -1, &why))
        return 0;
    control_attach(&control, -1);
    control.state = size % 2 ? CONTROL_SILENT : CONTROL_OPEN;
    control.input_credit = 0;
    char *at = line_buffer_room(&control.in, &room);
    if (size > room)
        return 0;
    memcpy(at, data, size);
    line_buffer_filled(&control.in, size);
    while (control_next(&control, &event, &why) == 1)
        check(&control, &event);
    return 0;
}
