/* What a switch spends on a packet, without any I/O. */
#include <time.h>

#include "sw.h"

static bool take(void *port, const uint8_t *frame, uint32_t len, ns_t when)
{
    (void)frame;
    (void)len;
    (void)when;
    ++*(uint64_t *)port;
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

/* Let `n` frames, taken in turn from `count` of them each `len` bytes long, arrive `gap` apart and
 * leave by whatever port. Returns the nanoseconds of work; *sent is how many left. */
ns_t cost_run(struct sw *sw, uint32_t ports, const uint8_t *frames, uint32_t count, uint32_t len,
              uint64_t n, ns_t gap, uint32_t in_port, uint64_t *sent)
{
    *sent = 0;
    for (uint32_t port = 1; port <= ports; port++)
        sw_attach(sw, port, &nowhere, sent);
    ns_t start = worked(), now = 1000;
    for (uint64_t i = 0; i < n; i += 32) {
        for (unsigned k = 0; k < 32; k++)
            sw_receive(sw, in_port, frames + (i + k) % count * len, len, now += gap);
        sw_service(sw, now);
    }
    ns_t took = worked() - start;
    for (uint32_t port = 1; port <= ports; port++)
        sw_detach(sw, port);
    return took;
}
