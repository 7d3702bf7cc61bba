/* What a switch has to tell its control plane: a bounded queue of records and an eventfd.
 *
 * The data plane writes, any one thread reads. When the reader is too slow records are refused and
 * the writer counts them: the data plane never waits.
 */
#pragma once

#include <pthread.h>

#include "base.h"

enum event_kind {
    EVENT_PACKET_IN = 1, /* body: the frame */
    EVENT_DIGEST = 2,    /* a: digest, b: list id, c: samples, d: load; body: the samples */
    EVENT_IDLE = 3,      /* a: table, d: load; body: a ctl_entry record */
    EVENT_PORT = 4,      /* a: port, b: up */
};

struct event_head {
    uint32_t kind;
    uint32_t body; /* bytes that follow, padded to eight */
    ns_t time;
    uint32_t a, b, c, d;
};

struct event_queue {
    pthread_mutex_t lock;
    int fd;        /* an eventfd, readable while records wait; -1: nobody listens, refuse all */
    uint8_t *ring; /* records lie whole: one that does not fit before the end starts over */
    size_t size, head, tail, used;
    uint64_t refused;
};

bool event_init(struct event_queue *q, size_t size, bool listen);
void event_free(struct event_queue *q);
bool event_put(struct event_queue *q, const struct event_head *head, const void *body);
/* As many whole records as fit in `room` bytes; returns the bytes taken. */
size_t event_drain(struct event_queue *q, void *out, size_t room);
