/* The line buffer: the first byte chooses its size, the second how many bytes come at a time; the
 * lines that come out, joined by newlines, are a prefix of what went in.
 */
#include <errno.h>
#include <string.h>

#include "common/text/line_buffer.h"
#include "test/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    char memory[256], *line;
    size_t capacity = data[0] + 1u, piece = data[1] + 1u, length, given = 0, taken = 0;
    struct line_buffer buffer;
    line_buffer_init(&buffer, memory, capacity);
    data += 2;
    size -= 2;
    while (given < size) {
        size_t room;
        char *to = line_buffer_room(&buffer, &room);
        FUZZ_CHECK(room > 0 && to >= memory && to + room <= memory + capacity);
        size_t count = size - given < piece ? size - given : piece;
        count = count < room ? count : room;
        memcpy(to, data + given, count);
        line_buffer_filled(&buffer, count);
        given += count;
        int result;
        while ((result = line_buffer_take(&buffer, &line, &length)) == 1) {
            FUZZ_CHECK(memcmp(line, data + taken, length) == 0 && line[length] == '\0');
            FUZZ_CHECK(!memchr(line, '\n', length) && data[taken + length] == '\n');
            taken += length + 1;
        }
        FUZZ_CHECK(!memchr(data + taken, '\n', given - taken));
        FUZZ_CHECK(result == (given - taken == capacity ? -EMSGSIZE : 0));
        if (result < 0)
            return 0;
    }
    return 0;
}
