/* Load at native speed, for the switch benchmark: a generator that overloads an interface, and a
 * driver that runs a switch with no I/O at all. Both use the same frames: IPv4 and UDP, 256
 * destinations in as many /24 networks from 10.0.0.0 on, header checksums right.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "sw.h"

#define FLOWS 256u
#define BATCH 64u
#define FRAME_MAX 2048u
#define IP_AT 14u

static ns_t time_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (ns_t)t.tv_sec * 1000000000 + (ns_t)t.tv_nsec;
}

void load_frame(uint8_t *frame, uint32_t len, uint32_t flow)
{
    static const uint8_t head[] = {
        2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0,                     /* Ethernet */
        0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 255, 0, 1, 10, 0, 0, 9, /* IPv4 */
    };
    memset(frame, 0, len);
    memcpy(frame, head, sizeof head);
    uint8_t *ip = frame + IP_AT;
    be_store(ip + 2, 2, len - IP_AT);
    ip[18] = (uint8_t)flow;
    uint32_t sum = 0;
    for (unsigned i = 0; i < 20; i += 2)
        sum += (uint32_t)be_load(ip + i, 2);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    be_store(ip + 10, 2, ~sum & 0xffff);
}

/* Send frames of `len` bytes through an interface for `duration`, as fast as they go; returns how
 * many were taken, or UINT64_MAX with errno. */
uint64_t load_blast(const char *interface, uint32_t len, ns_t duration)
{
    static uint8_t frames[FLOWS][FRAME_MAX];
    static struct iovec parts[FLOWS];
    static struct mmsghdr messages[FLOWS];
    int one = 1, fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    struct sockaddr_ll address = {.sll_family = AF_PACKET,
                                  .sll_ifindex = (int)if_nametoindex(interface)};
    if (fd < 0 || len > FRAME_MAX || bind(fd, (struct sockaddr *)&address, sizeof address) ||
        setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one)) {
        if (fd >= 0)
            close(fd);
        return UINT64_MAX;
    }
    for (unsigned i = 0; i < FLOWS; i++) {
        load_frame(frames[i], len, i);
        parts[i] = (struct iovec){frames[i], len};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
    }
    uint64_t sent = 0;
    unsigned at = 0;
    ns_t end = time_of(CLOCK_MONOTONIC) + duration;
    for (; time_of(CLOCK_MONOTONIC) < end; at = (at + BATCH) % FLOWS) {
        int n = sendmmsg(fd, messages + at, BATCH, 0);
        sent += n > 0 ? (unsigned)n : 0;
    }
    close(fd);
    return sent;
}

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

/* Let a switch receive `n` frames at port 1 and send them at port 2, in bursts as a port would;
 * returns the nanoseconds of processor time it took, or 0 if frames were lost. */
ns_t load_pipeline(struct sw *sw, uint32_t len, uint64_t n)
{
    static uint8_t frames[FLOWS][FRAME_MAX];
    static uint64_t sent[2];
    if (len > FRAME_MAX)
        return 0;
    for (unsigned i = 0; i < FLOWS; i++)
        load_frame(frames[i], len, i);
    for (uint32_t i = 0; i < 2; i++)
        sw_attach(sw, i + 1, &nowhere, &sent[i]);
    sent[1] = 0;
    ns_t start = time_of(CLOCK_THREAD_CPUTIME_ID);
    for (uint64_t i = 0; i < n; i += BATCH) {
        ns_t now = time_of(CLOCK_MONOTONIC);
        for (unsigned k = 0; k < BATCH; k++)
            sw_receive(sw, 1, frames[(i + k) % FLOWS], len, now);
        sw_service(sw, now);
    }
    ns_t took = time_of(CLOCK_THREAD_CPUTIME_ID) - start;
    for (uint32_t i = 0; i < 2; i++)
        sw_detach(sw, i + 1);
    return sent[1] >= n ? took : 0;
}
