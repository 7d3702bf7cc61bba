/* How a fuzzer's bytes become frames: records, one after the other, until nothing is left.
 *
 *   where (1)  after (1)  length (2, little endian)  frame (length, or what there is)
 *
 * `where` is a port and FLAGS, `after` tells how long after the one before it comes. A frame's sum
 * is put right if it asks for that: no mutation would hit it, and what is behind it is of interest.
 */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { RECORD_HEAD = 4, RECORD_MAX = 9728, WHERE = 0x1F, RIGHT_SUM = 0x80, CUT = 0x40, LATE = 0x20 };

struct record {
    uint8_t where;
    uint64_t after_ns;
    size_t length;
    uint8_t *frame; /* of exactly that size, so that a sanitizer sees a read past the end */
};

/* The next one; false when none is left. The caller frees the frame. */
static inline int record_next(const uint8_t **data, size_t *size, struct record *record)
{
    if (*size < RECORD_HEAD)
        return 0;
    const uint8_t *head = *data;
    size_t length = (size_t)head[2] | (size_t)head[3] << 8, left = *size - RECORD_HEAD;
    length %= RECORD_MAX + 1;
    if (length > left)
        length = left;
    record->where = head[0];
    record->after_ns = head[1] ? 1ull << (head[1] & 31) : 0; /* up to two seconds */
    record->length = length;
    record->frame = malloc(length ? length : 1);
    memcpy(record->frame, head + RECORD_HEAD, length);
    *data += RECORD_HEAD + length;
    *size -= RECORD_HEAD + length;
    return 1;
}
