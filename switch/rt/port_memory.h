/* Ports in memory: what is sent is kept until somebody takes it. */
#pragma once

#include "sw.h"

struct memory_frame { /* then the frame, padded to eight bytes */
    ns_t when;
    uint32_t port;
    uint32_t len;
};

struct memory_box { /* one per switch, shared by its ports in memory */
    uint8_t *bytes;
    size_t used, room;
};

struct memory_box *memory_box_new(void);
void memory_box_free(struct memory_box *box);
/* Take all frames; the pointer holds until the next send. */
const void *memory_box_take(struct memory_box *box, size_t *size);

bool memory_attach(struct sw *sw, uint32_t number, struct memory_box *box);
