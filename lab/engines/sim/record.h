/* Capture files of frames of which only the beginning exists: their true length is kept beside. */
#ifndef RECORD_H
#define RECORD_H

#include <stdint.h>

struct record;

struct record *record_open(const char *path); /* NULL: errno tells */
void record_frame(struct record *record, const void *frame, uint32_t stored, uint32_t wire,
                  uint64_t when_ns);
void record_close(struct record *record); /* NULL is fine */

#endif
