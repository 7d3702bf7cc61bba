/* The adapter that programs of a host send through: their kernel's stack on one side, the fabric's
 * cable on the other.
 *
 *   stack ── eth0 ══ eth0-nic ──► a queue a class ──► serialiser ──► cable ──► h1-eth0 ══ leaf
 *                        ▲                                ▲ pauses                 │
 *                        └──────────────── all but pause frames ◄──────────────────┘
 *
 * A frame takes as long to send as it takes the link, one after the other, classes that have any in
 * turns; a class that was paused stands still. Then it is on the cable until its last bit has come
 * out at the other end. So a stack that knows nothing of pauses loses nothing in a class that
 * switches pause, and none sends faster than the link.
 *
 * Arguments:
 *
 *   OUTER INNER BITS_PER_S DILATION DELAY_NS OVERHEAD QUEUE_FRAMES CLASSES
 *
 * OVERHEAD is what a frame takes on the wire besides its bytes; CLASSES 64 digits, of each DSCP its
 * class. It prints "ready", and then reads lines until its input ends:
 *
 *   mark DSCP     what says nothing of its class (DSCP 0) is marked so from now on
 *   tell          "sent N lost N pauses N paused NS": frames, those that found its queue full,
 *                 pause frames that had come, and how long classes stood still, in fabric time
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "wire.h"

enum {
    CLASSES = 8,
    FRAME_MAX = 16384,
    BATCH = 64,
    ROCE_MORE = 64,
    SOCKET_BUFFER = 16 << 20,
    EVERY_PROTOCOL = 0x0003,
    EXIT_REFUSED = 2,
};

#define NS_PER_S 1000000000u

struct frame {
    struct frame *next;
    ns_t ready; /* real, like all times here: in a queue when it came, on the cable when it arrives */
    uint32_t length;
    uint8_t bytes[];
};

struct queue {
    struct frame *head, **tail;
    unsigned count;
};

struct nic {
    int outer, inner;
    uint64_t bps, dilation;
    ns_t delay;
    uint32_t overhead, queue_most;
    uint8_t class_of[64];
    int mark; /* a DSCP; -1: none */
    struct queue queues[CLASSES], cable;
    unsigned last_class;
    ns_t free_at; /* when the serialiser has sent what it was given */
    ns_t paused_from[CLASSES], paused_until[CLASSES];
    uint64_t sent, lost, pauses, paused;
};

static ns_t real_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (ns_t)t.tv_sec * NS_PER_S + (ns_t)t.tv_nsec;
}

static ns_t lasts(const struct nic *nic, uint64_t bytes)
{
    return (ns_t)((unsigned __int128)bytes * 8 * NS_PER_S * nic->dilation / nic->bps);
}

static void put(struct queue *queue, struct frame *frame)
{
    frame->next = NULL;
    *queue->tail = frame;
    queue->tail = &frame->next;
    queue->count++;
}

static struct frame *take(struct queue *queue)
{
    struct frame *frame = queue->head;
    queue->head = frame->next;
    if (!queue->head)
        queue->tail = &queue->head;
    queue->count--;
    return frame;
}

/* Where a frame's IP header begins, if it has a whole one; its version is then in its first bits. */
static uint8_t *ip_of(uint8_t *frame, uint32_t length)
{
    uint8_t *ip = frame + WIRE_IP_AT;
    if (length < WIRE_IP_AT + WIRE_IPV4)
        return NULL;
    switch (be16_load(frame + 12)) {
    case ETHERTYPE_IPV4:
        return WIRE_IP_AT + (ip[0] & 15u) * 4 <= length ? ip : NULL;
    case ETHERTYPE_IPV6:
        return ip;
    default:
        return NULL;
    }
}

static int dscp_of(const uint8_t *ip)
{
    return ip[0] >> 4 == 6 ? (ip[0] & 15) << 2 | ip[1] >> 6 : ip[1] >> 2;
}

static void set_dscp(uint8_t *ip, int dscp)
{
    if (ip[0] >> 4 == 6) {
        ip[0] = (uint8_t)(0x60 | dscp >> 2);
        ip[1] = (uint8_t)((dscp & 3) << 6 | (ip[1] & 63));
        return;
    }
    uint32_t sum = 0;
    ip[1] = (uint8_t)(dscp << 2 | (ip[1] & 3));
    be16_store(ip + 10, 0);
    for (unsigned at = 0; at < (ip[0] & 15u) * 4; at += 2)
        sum += be16_load(ip + at);
    while (sum >> 16)
        sum = (sum & 0xFFFF) + (sum >> 16);
    be16_store(ip + 10, (uint16_t)~sum);
}

/* Which class a frame goes in, once it is marked. */
static unsigned classify(const struct nic *nic, uint8_t *frame, uint32_t length)
{
    uint8_t *ip = ip_of(frame, length);
    if (!ip)
        return 0;
    if (nic->mark >= 0 && !dscp_of(ip))
        set_dscp(ip, nic->mark);
    return nic->class_of[dscp_of(ip)];
}

/* How many frames may wait before one like this. What RoCEv2 sends waits in its program's own memory,
 * before a real adapter, and whoever sends it has an end of it (traffic/verbs): none of it is lost here. */
static unsigned most_before(const struct nic *nic, uint8_t *frame, uint32_t length)
{
    uint8_t *ip = ip_of(frame, length);
    uint32_t udp = ip ? ip_bytes(ip) : 0;
    bool is_roce = ip && ip_protocol(ip) == IP_UDP && WIRE_IP_AT + udp + WIRE_UDP <= length &&
                   be16_load(ip + udp + 2) == ROCE_PORT;
    return nic->queue_most * (is_roce ? ROCE_MORE : 1);
}

static bool take_from_stack(struct nic *nic)
{
    uint8_t buffer[FRAME_MAX];
    unsigned n = 0;
    for (; n < BATCH; n++) {
        ssize_t length = recv(nic->inner, buffer, sizeof buffer, MSG_DONTWAIT | MSG_TRUNC);
        if (length < WIRE_ETHERNET)
            break;
        if (length > (ssize_t)sizeof buffer)
            continue; /* no interface here has such an MTU */
        struct queue *queue = &nic->queues[classify(nic, buffer, (uint32_t)length)];
        bool fits = queue->count < most_before(nic, buffer, (uint32_t)length);
        struct frame *frame = fits ? malloc(sizeof *frame + (size_t)length) : NULL;
        if (!frame) {
            nic->lost++;
            continue;
        }
        frame->ready = real_now();
        frame->length = (uint32_t)length;
        memcpy(frame->bytes, buffer, frame->length);
        put(queue, frame);
    }
    return n > 0;
}

static void end_pause(struct nic *nic, unsigned class, ns_t at)
{
    if (nic->paused_until[class])
        nic->paused += at - nic->paused_from[class];
    nic->paused_until[class] = 0;
}

static void obey(struct nic *nic, const uint8_t *frame, ns_t now)
{
    uint16_t classes = be16_load(frame + 16);
    nic->pauses++;
    for (unsigned class = 0; class < CLASSES; class++) {
        if (!(classes >> class & 1))
            continue;
        ns_t length = lasts(nic, (uint64_t)be16_load(frame + 18 + 2 * class) * PFC_QUANTUM_BYTES);
        if (!length || !nic->paused_until[class]) {
            end_pause(nic, class, now);
            nic->paused_from[class] = now;
        }
        nic->paused_until[class] = length ? now + length : 0;
        if (!length && nic->free_at < now)
            nic->free_at = now; /* what it did not send meanwhile it cannot make up for */
    }
}

static bool take_from_cable(struct nic *nic)
{
    uint8_t buffer[FRAME_MAX];
    unsigned n = 0;
    for (; n < BATCH; n++) {
        ssize_t length = recv(nic->outer, buffer, sizeof buffer, MSG_DONTWAIT);
        if (length < WIRE_ETHERNET)
            break;
        if (be16_load(buffer + 12) != ETHERTYPE_MAC_CONTROL)
            send(nic->inner, buffer, (size_t)length, MSG_DONTWAIT);
        else if (length >= 34 && be16_load(buffer + 14) == PFC_OPCODE)
            obey(nic, buffer, real_now());
    }
    return n > 0;
}

/* When a class may send the frame at its head, the serialiser aside; NS_NEVER: it has none. */
static ns_t may_send(const struct nic *nic, unsigned class)
{
    const struct queue *queue = &nic->queues[class];
    if (!queue->count)
        return NS_NEVER;
    ns_t paused = nic->paused_until[class];
    return queue->head->ready > paused ? queue->head->ready : paused;
}

/* Put on the cable what is due; when there will be more to do. A frame begins when it could, not
 * when this program came to it: that it is late once does not make the link slow. */
static ns_t serialise(struct nic *nic, ns_t now)
{
    for (unsigned class = 0; class < CLASSES; class++)
        if (nic->paused_until[class] && nic->paused_until[class] <= now) {
            ns_t until = nic->paused_until[class];
            end_pause(nic, class, until);
            if (nic->free_at < until)
                nic->free_at = until;
        }
    for (;;) {
        ns_t soonest = NS_NEVER;
        unsigned chosen = 0;
        for (unsigned step = 1; step <= CLASSES; step++) {
            unsigned class = (nic->last_class + step) % CLASSES;
            ns_t at = may_send(nic, class);
            if (at != NS_NEVER && at < nic->free_at)
                at = nic->free_at; /* so all that wait are alike, and take turns */
            if (at < soonest) {
                soonest = at;
                chosen = class;
            }
        }
        if (soonest > now)
            return soonest;
        struct frame *frame = take(&nic->queues[chosen]);
        nic->last_class = chosen;
        nic->free_at = soonest + lasts(nic, frame->length + nic->overhead);
        frame->ready = nic->free_at + nic->delay;
        put(&nic->cable, frame);
    }
}

static ns_t deliver(struct nic *nic, ns_t now)
{
    while (nic->cable.count && nic->cable.head->ready <= now) {
        struct frame *frame = nic->cable.head;
        if (send(nic->outer, frame->bytes, frame->length, MSG_DONTWAIT) < 0 &&
            (errno == EAGAIN || errno == ENOBUFS))
            return now + NS_PER_S / 1000; /* the interface is full for a moment */
        nic->sent++;
        free(take(&nic->cable));
    }
    return nic->cable.count ? nic->cable.head->ready : NS_NEVER;
}

static void tell(struct nic *nic)
{
    ns_t now = real_now(), paused = nic->paused;
    for (unsigned class = 0; class < CLASSES; class++)
        if (nic->paused_until[class] > now)
            paused += now - nic->paused_from[class];
    printf("sent %llu lost %llu pauses %llu paused %llu\n", (unsigned long long)nic->sent,
           (unsigned long long)nic->lost, (unsigned long long)nic->pauses,
           (unsigned long long)(paused / nic->dilation));
    fflush(stdout);
}

/* Take a line that has come. False: its input has ended, or makes no sense. */
static bool goes_on(struct nic *nic)
{
    char line[64];
    if (!fgets(line, sizeof line, stdin))
        return false;
    if (strcmp(line, "tell\n"))
        return sscanf(line, "mark %d", &nic->mark) == 1 && nic->mark < 64;
    tell(nic);
    return true;
}

static bool nap(struct nic *nic, ns_t wake)
{
    struct pollfd files[3] = {
        {.fd = nic->inner, .events = POLLIN},
        {.fd = nic->outer, .events = POLLIN},
        {.fd = STDIN_FILENO, .events = POLLIN},
    };
    ns_t now = real_now(), left = wake <= now ? 0 : wake - now;
    if (left > NS_PER_S)
        left = NS_PER_S;
    struct timespec limit = {(time_t)(left / NS_PER_S), (long)(left % NS_PER_S)};
    return ppoll(files, 3, &limit, NULL) <= 0 || !files[2].revents || goes_on(nic);
}

static void run(struct nic *nic)
{
    for (ns_t wake = 0; nap(nic, wake);) {
        bool busy = take_from_cable(nic);
        busy |= take_from_stack(nic);
        ns_t now = real_now();
        wake = ns_least(serialise(nic, now), deliver(nic, now));
        for (unsigned class = 0; class < CLASSES; class++)
            if (nic->paused_until[class])
                wake = ns_least(wake, nic->paused_until[class]);
        if (busy)
            wake = 0;
    }
}

static int open_socket(const char *interface)
{
    int one = 1, buffer = SOCKET_BUFFER, fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET,
        .sll_protocol = htons(EVERY_PROTOCOL),
        .sll_ifindex = (int)if_nametoindex(interface),
    };
    struct packet_mreq everything = {.mr_ifindex = address.sll_ifindex,
                                     .mr_type = PACKET_MR_PROMISC};
    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof buffer);
    if (fd < 0 || !address.sll_ifindex || bind(fd, (struct sockaddr *)&address, sizeof address) ||
        setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &everything, sizeof everything)) {
        fprintf(stderr, "%s cannot be opened: %s\n", interface, strerror(errno));
        return -1;
    }
    return fd;
}

static bool read_arguments(struct nic *nic, int count, char **words)
{
    if (count != 9 || strlen(words[8]) != 64)
        return false;
    nic->bps = strtoull(words[3], NULL, 10);
    nic->dilation = strtoull(words[4], NULL, 10);
    nic->delay = strtoull(words[5], NULL, 10) * nic->dilation;
    nic->overhead = (uint32_t)strtoul(words[6], NULL, 10);
    nic->queue_most = (uint32_t)strtoul(words[7], NULL, 10);
    for (unsigned dscp = 0; dscp < 64; dscp++)
        nic->class_of[dscp] = (uint8_t)(words[8][dscp] - '0') % CLASSES;
    return nic->bps && nic->dilation && nic->queue_most;
}

int main(int count, char **words)
{
    struct nic nic = {.mark = -1};
    if (!read_arguments(&nic, count, words)) {
        fprintf(stderr, "the arguments are: OUTER INNER BITS_PER_S DILATION DELAY_NS OVERHEAD "
                        "QUEUE_FRAMES CLASSES\n");
        return EXIT_REFUSED;
    }
    nic.cable.tail = &nic.cable.head;
    for (unsigned class = 0; class < CLASSES; class++)
        nic.queues[class].tail = &nic.queues[class].head;
    nic.outer = open_socket(words[1]);
    nic.inner = nic.outer < 0 ? -1 : open_socket(words[2]);
    if (nic.inner < 0)
        return EXIT_REFUSED;
    setvbuf(stdin, NULL, _IONBF, 0); /* poll is to see lines that wait */
    prctl(PR_SET_TIMERSLACK, 1);
    printf("ready\n");
    fflush(stdout);
    run(&nic);
    return 0;
}
