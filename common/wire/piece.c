/* Reads and writes the lengths in front of pieces; piece.h has the format. */
#include "common/wire/piece.h"

void piece_write_head(uint8_t out[PIECE_HEAD], size_t length)
{
    out[0] = (uint8_t)(length >> 8);
    out[1] = (uint8_t)length;
}

size_t piece_read_head(struct piece_reader *reader, const uint8_t *bytes, size_t length)
{
    size_t taken = 0;
    while (taken < length && reader->left == 0 && !reader->closed) {
        uint8_t byte = bytes[taken++];
        if (reader->head_length == 0) {
            reader->head = byte;
            reader->head_length = 1;
            continue;
        }
        reader->head_length = 0;
        reader->left = (uint16_t)(reader->head << 8 | byte);
        reader->closed = reader->left == 0 && reader->ended;
        reader->ended |= reader->left == 0;
    }
    return taken;
}
