/* Millions of frames through one switch: what they cost, and what became of them. */
#include <time.h>

#include "sw.h"

struct outcome {
    uint64_t sent, marked; /* marked: by ECN, congestion experienced */
};

static bool take(void *port, const uint8_t *frame, uint32_t len, ns_t when)
{
    struct outcome *outcome = port;
    (void)when;
    outcome->sent++;
    outcome->marked += len > 15 && (frame[15] & 3) == 3;
    return true;
}

static void leave(void *port) { (void)port; }

static const struct port_ops nowhere = {.send = take, .close = leave};

static ns_t worked(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (ns_t)t.tv_sec * 1000000000 + (ns_t)t.tv_nsec;
}

/* Let `n` frames arrive at a port, `gap` apart, taken in turn from `count` of `len` bytes each, and
 * let the switch send what it may after every `batch` of them. Ports 1 to `ports` lead nowhere.
 * Returns the nanoseconds of work. */
ns_t drive(struct sw *sw, uint32_t ports, uint32_t in_port, const uint8_t *frames, uint32_t count,
           uint32_t len, uint64_t n, uint64_t batch, ns_t gap, struct outcome *outcome)
{
    *outcome = (struct outcome){0};
    for (uint32_t port = 1; port <= ports; port++)
        sw_attach(sw, port, &nowhere, outcome);
    ns_t start = worked(), now = 1000;
    for (uint64_t i = 0; i < n; i += batch) {
        for (uint64_t k = i; k < i + batch; k++)
            sw_receive(sw, in_port, frames + k % count * len, len, now += gap);
        sw_service(sw, now);
    }
    ns_t took = worked() - start;
    for (uint32_t port = 1; port <= ports; port++)
        sw_detach(sw, port);
    return took;
}
