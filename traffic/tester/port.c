/* A port's two directions: its serialiser and cable, obedient to pauses, and what comes.
 *
 *   flows, whichever is due ──► serialiser ──► cable ──► interface        one frame after the other
 *   interface ──► pauses, marks, capture
 *
 * A frame begins when it could, not when this program came to it, so that it is late once does not
 * make the link slow; and is handed over when its last bit has come out of the cable.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>

#include "tester.h"

enum {
    SOCKET_BUFFER = 64 << 20,
    EVERY_PROTOCOL = 0x0003,
    PAUSE_OPCODE = 0x0001,
    PAUSE_MIN = 34, /* bytes of a frame that pauses classes; up to where the other has its time */
    PLAIN_PAUSE_MIN = 18,
    VLAN_TAG = 4,
    ETHERTYPE_VLAN = 0x8100,
};

#define LOOK_NS (NS_PER_S / 10)

ns_t real_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (ns_t)t.tv_sec * NS_PER_S + (ns_t)t.tv_nsec;
}

bool port_open(struct port *port, const char *interface)
{
    int one = 1, buffer = SOCKET_BUFFER;
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET,
        .sll_protocol = htons(EVERY_PROTOCOL),
        .sll_ifindex = (int)if_nametoindex(interface),
    };
    struct packet_mreq everything = {.mr_ifindex = address.sll_ifindex,
                                     .mr_type = PACKET_MR_PROMISC};
    strncpy(port->interface, interface, sizeof port->interface - 1);
    port->cable = calloc(CABLE_MAX, sizeof *port->cable);
    port->socket = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    setsockopt(port->socket, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one);
    setsockopt(port->socket, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
    setsockopt(port->socket, SOL_PACKET, PACKET_AUXDATA, &one, sizeof one);
    if (setsockopt(port->socket, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer))
        setsockopt(port->socket, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    if (setsockopt(port->socket, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof buffer))
        setsockopt(port->socket, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
    if (port->cable && port->socket >= 0 && address.sll_ifindex &&
        !bind(port->socket, (struct sockaddr *)&address, sizeof address) &&
        !setsockopt(port->socket, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &everything, sizeof everything))
        return true;
    fprintf(stderr, "%s cannot be opened: %s\n", interface, strerror(errno));
    return false;
}

bool port_is_up(const struct port *port)
{
    struct ifreq request = {0};
    memcpy(request.ifr_name, port->interface, sizeof request.ifr_name);
    return !ioctl(port->socket, SIOCGIFFLAGS, &request) && request.ifr_flags & IFF_RUNNING;
}

/* Counting */

static void count(struct counts *counts, uint32_t length, ns_t when)
{
    if (!counts->frames++)
        counts->first = when;
    counts->last = when;
    counts->bytes += length + FCS;
}

/* How quickly they came since it was looked last, if that is some time ago. */
void port_look(struct counts *counts, ns_t now)
{
    if (counts->looked && now - counts->looked < LOOK_NS)
        return;
    double took = (double)(now - counts->looked) / NS_PER_S;
    if (counts->looked) {
        counts->frames_per_s = (double)(counts->frames - counts->frames_then) / took;
        counts->bytes_per_s = (double)(counts->bytes - counts->bytes_then) / took;
    }
    counts->looked = now;
    counts->frames_then = counts->frames;
    counts->bytes_then = counts->bytes;
}

/* Sending */

static double lasts(const struct port *port, double bytes)
{
    return bytes * 8e9 * (double)port->dilation / (double)port->bps;
}

static bool is_through(const struct flow *flow, double at)
{
    if (flow->lasts > 0 && at - flow->began >= flow->lasts)
        return true;
    if (!flow->packets)
        return false;
    if (!flow->has_bursts)
        return flow->number >= flow->packets;
    return flow->bursts && flow->number >= flow->packets * flow->bursts;
}

/* Whose frame is next, and when it begins. */
static struct flow *next_flow(struct port *port, double *begins, unsigned *id)
{
    struct flow *chosen = NULL;
    for (unsigned i = 0; i < port->n_flows; i++) {
        struct flow *flow = port->flows[i];
        if (!flow || !flow->is_on || flow->is_held)
            continue;
        double at = flow->due;
        if (at < port->free_from[flow->class])
            at = port->free_from[flow->class];
        if (at < port->paused_until[flow->class])
            at = port->paused_until[flow->class];
        if (at < port->free_at)
            at = port->free_at;
        if (is_through(flow, at)) {
            flow->is_on = false;
            continue;
        }
        if (!chosen || at < *begins || (at <= *begins && flow->due < chosen->due)) {
            chosen = flow;
            *begins = at;
            *id = i;
        }
    }
    return chosen;
}

/* When a flow's next frame is due, of which one began now. What was held up by others or by pauses is
 * made up for by a frame's worth, and no more: it was not to be sent faster. */
static void advance(const struct port *port, struct flow *flow, double began, uint32_t length)
{
    double interval = flow_interval(flow, port, length);
    flow->number++;
    flow->due = (flow->due > began - interval ? flow->due : began - interval) + interval;
    if (flow->has_bursts && flow->number % flow->packets == 0)
        flow->due = began + lasts(port, length + port->overhead) + flow->pause;
}

static ns_t serialise(struct port *port, ns_t now)
{
    double begins = 0;
    unsigned id = 0;
    for (unsigned n = 0; n < BATCH; n++) {
        struct flow *flow = next_flow(port, &begins, &id);
        if (!flow)
            return NS_NEVER;
        if (begins > (double)now)
            return (ns_t)begins;
        if (port->count == CABLE_MAX)
            return port->cable[port->first].ready;
        struct slot *slot = &port->cable[(port->first + port->count++) % CABLE_MAX];
        uint32_t length = flow_size(flow, flow->number);
        if (length < flow->head_bytes + flow->mark + FCS)
            length = flow->head_bytes + flow->mark + FCS;
        flow_frame(flow, slot->bytes, length, flow->number, id, (ns_t)begins);
        port->free_at = begins + lasts(port, length + port->overhead);
        slot->ready = (ns_t)port->free_at + port->delay;
        slot->length = length;
        slot->flow = (int)id;
        flow->on_cable++;
        advance(port, flow, begins, length);
    }
    return now;
}

/* The next frame of the cable is through with it. */
static void leave_cable(struct port *port, ns_t now, bool is_sent)
{
    struct slot *slot = &port->cable[port->first];
    struct flow *flow = port->flows[slot->flow];
    uint64_t late = now - slot->ready;
    port->first = (port->first + 1) % CABLE_MAX;
    port->count--;
    if (flow && flow->on_cable)
        flow->on_cable--;
    port->lost_on_send += !is_sent;
    if (!is_sent)
        return;
    count(&port->sent, slot->length, slot->ready);
    count(&port->sent_of[slot->flow], slot->length, slot->ready);
    port->late_sum += late;
    port->late_most = late > port->late_most ? late : port->late_most;
}

static ns_t deliver(struct port *port, ns_t now)
{
    struct mmsghdr messages[BATCH] = {0};
    struct iovec parts[BATCH];
    for (;;) {
        unsigned n = 0;
        for (; n < BATCH && n < port->count; n++) {
            struct slot *slot = &port->cable[(port->first + n) % CABLE_MAX];
            if (slot->ready > now)
                break;
            parts[n] = (struct iovec){slot->bytes, slot->length};
            messages[n].msg_hdr = (struct msghdr){.msg_iov = &parts[n], .msg_iovlen = 1};
        }
        if (!n)
            return port->count ? port->cable[port->first].ready : NS_NEVER;
        int sent = sendmmsg(port->socket, messages, n, MSG_DONTWAIT);
        if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS))
            return now + NS_PER_S / 1000; /* the interface is full for a moment */
        if (sent <= 0) /* the interface is down: the frame ends here */
            leave_cable(port, now, false);
        for (int i = 0; i < sent; i++)
            leave_cable(port, now, true);
    }
}

static void end_pause(struct port *port, unsigned class, double at)
{
    if (port->paused_until[class] > 0 && at > port->paused_from[class]) {
        port->paused[class] += at - port->paused_from[class];
        port->free_from[class] = at;
    }
    port->paused_until[class] = 0;
}

ns_t port_send(struct port *port, ns_t now)
{
    ns_t wake = NS_NEVER;
    for (unsigned class = 0; class < CLASSES; class++) {
        double until = port->paused_until[class];
        if (until > 0 && until <= (double)now)
            end_pause(port, class, until);
    }
    wake = ns_least(wake, serialise(port, now));
    return ns_least(wake, deliver(port, now));
}

/* Receiving */

static void pause_class(struct port *port, unsigned class, uint16_t quanta, double now)
{
    double length = lasts(port, (double)quanta * PFC_QUANTUM_BYTES);
    if (!quanta || port->paused_until[class] <= 0) {
        end_pause(port, class, now);
        port->paused_from[class] = now;
    }
    port->paused_until[class] = quanta ? now + length : 0;
}

static void obey(struct port *port, const uint8_t *frame, uint32_t length, double now)
{
    uint16_t opcode = length >= PLAIN_PAUSE_MIN ? be16_load(frame + 14) : 0;
    if (opcode == PAUSE_OPCODE) {
        port->pause_frames++;
        for (unsigned class = 0; port->obeys_all && class < CLASSES; class++)
            pause_class(port, class, be16_load(frame + 16), now);
    }
    if (opcode != PFC_OPCODE || length < PAUSE_MIN)
        return;
    port->pause_frames++;
    for (unsigned class = 0; class < CLASSES; class++) {
        uint16_t quanta = be16_load(frame + 18 + 2 * class);
        if (!(be16_load(frame + 16) >> class & 1))
            continue;
        port->pauses[class] += quanta > 0;
        if (port->class_of[class] >= 0)
            pause_class(port, (unsigned)port->class_of[class], quanta, now);
    }
}

/* Whose a frame is, by a mark that ends before so many bytes; NULL: it has none there. */
static struct received *marked(struct port *port, const uint8_t *frame, uint32_t length,
                               uint32_t size, uint32_t trailer)
{
    if (length < WIRE_ETHERNET + size + trailer)
        return NULL;
    const uint8_t *at = frame + length - size - trailer;
    if (be16_load(at) != (size == MARK_LONG ? MARK_LONG_MAGIC : MARK_SHORT_MAGIC))
        return NULL;
    uint16_t name = be16_load(at + 2);
    struct received *found = &port->received_of[name % FLOWS_MAX];
    return found->is_expected && found->run == name / FLOWS_MAX ? found : NULL;
}

static void take(struct port *port, const uint8_t *frame, uint32_t length, ns_t when)
{
    static const uint32_t sizes[] = {MARK_LONG, MARK_SHORT}, trailers[] = {0, FCS, 2 * FCS};
    count(&port->received, length, when);
    if (port->capture)
        capture_frame(port->capture, frame, length,
                      when > port->epoch ? (when - port->epoch) / port->dilation : 0);
    if (length >= WIRE_ETHERNET && be16_load(frame + 12) == ETHERTYPE_MAC_CONTROL)
        obey(port, frame, length, (double)when);
    for (unsigned i = 0; i < 6; i++) {
        struct received *found = marked(port, frame, length, sizes[i / 3], trailers[i % 3]);
        if (!found)
            continue;
        count(&found->counts, length, when);
        if (sizes[i / 3] == MARK_SHORT)
            return;
        const uint8_t *left_at = frame + length - trailers[i % 3] - 8;
        double own = lasts(port, length + port->overhead) * (found->is_stored ? 2 : 1);
        double took = (double)when - own - (double)be64_load(left_at);
        found->least = !found->timed || took < found->least ? took : found->least;
        found->most = !found->timed || took > found->most ? took : found->most;
        found->sum += took;
        found->timed++;
        return;
    }
}

/* When the kernel had a frame, by our clock: not before there was none, and not after now, however the
 * clock that it stamps by was set meanwhile. */
static ns_t came(struct msghdr *message, ns_t least, ns_t now, int64_t ahead)
{
    for (struct cmsghdr *one = CMSG_FIRSTHDR(message); one; one = CMSG_NXTHDR(message, one))
        if (one->cmsg_level == SOL_SOCKET && one->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec t;
            memcpy(&t, CMSG_DATA(one), sizeof t);
            int64_t at = (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec - ahead;
            return at > (int64_t)now ? now : at < (int64_t)least ? least : (ns_t)at;
        }
    return now;
}

/* Put back the VLAN tag that the kernel has taken out of a frame, for which there is room before it;
 * where the frame begins then. */
static uint8_t *tagged(struct msghdr *message, uint8_t *frame, uint32_t *length)
{
    for (struct cmsghdr *one = CMSG_FIRSTHDR(message); one; one = CMSG_NXTHDR(message, one)) {
        if (one->cmsg_level != SOL_PACKET || one->cmsg_type != PACKET_AUXDATA)
            continue;
        struct tpacket_auxdata aux;
        memcpy(&aux, CMSG_DATA(one), sizeof aux);
        if (!(aux.tp_status & TP_STATUS_VLAN_VALID) || *length < WIRE_ETHERNET)
            return frame;
        memmove(frame - VLAN_TAG, frame, 2 * 6);
        bool has_type = aux.tp_status & TP_STATUS_VLAN_TPID_VALID;
        be16_store(frame + 2 * 6 - VLAN_TAG, has_type ? aux.tp_vlan_tpid : ETHERTYPE_VLAN);
        be16_store(frame + 2 * 6 - VLAN_TAG + 2, aux.tp_vlan_tci);
        *length += VLAN_TAG;
        return frame - VLAN_TAG;
    }
    return frame;
}

bool port_receive(struct port *port)
{
    static uint8_t frames[BATCH][VLAN_TAG + FRAME_MAX];
    static union {
        struct cmsghdr header;
        uint8_t room[CMSG_SPACE(sizeof(struct timespec)) + CMSG_SPACE(sizeof(struct tpacket_auxdata))];
    } stamps[BATCH];
    struct mmsghdr messages[BATCH] = {0};
    struct iovec parts[BATCH];
    for (unsigned i = 0; i < BATCH; i++) {
        parts[i] = (struct iovec){frames[i] + VLAN_TAG, FRAME_MAX};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i],
                                              .msg_iovlen = 1,
                                              .msg_control = &stamps[i],
                                              .msg_controllen = sizeof stamps[i]};
    }
    ns_t looked = real_now(), least = port->none_at;
    int n = recvmmsg(port->socket, messages, BATCH, MSG_DONTWAIT, NULL);
    if (n < BATCH)
        port->none_at = looked;
    if (n <= 0)
        return false;
    struct timespec wall;
    ns_t now = real_now();
    clock_gettime(CLOCK_REALTIME, &wall);
    int64_t ahead = (int64_t)wall.tv_sec * NS_PER_S + wall.tv_nsec - (int64_t)now;
    for (int i = 0; i < n; i++) {
        struct msghdr *message = &messages[i].msg_hdr;
        uint32_t length = messages[i].msg_len;
        const uint8_t *frame = tagged(message, frames[i] + VLAN_TAG, &length);
        take(port, frame, length, came(message, least, now, ahead));
    }
    return true;
}
