/* The classic capture format, with nanosecond times. */
#include "record.h"

#include <stdio.h>

#define MAGIC_NANOSECONDS 0xa1b23c4du
#define LINK_ETHERNET 1
#define SNAP_LENGTH 65535
#define NS_IN_S 1000000000u

/* A record is a stream under another name. */
static FILE *stream(struct record *record) { return (FILE *)record; }

struct record *record_open(const char *path)
{
    FILE *file = fopen(path, "wb");
    uint32_t head[] = {MAGIC_NANOSECONDS, 2 | 4 << 16, 0, 0, SNAP_LENGTH, LINK_ETHERNET};
    if (file)
        fwrite(head, sizeof head, 1, file);
    return (struct record *)file;
}

void record_frame(struct record *record, const void *frame, uint32_t stored, uint32_t wire,
                  uint64_t when_ns)
{
    uint32_t head[] = {(uint32_t)(when_ns / NS_IN_S), (uint32_t)(when_ns % NS_IN_S), stored, wire};
    fwrite(head, sizeof head, 1, stream(record));
    fwrite(frame, stored, 1, stream(record));
}

void record_close(struct record *record)
{
    if (record)
        fclose(stream(record));
}
