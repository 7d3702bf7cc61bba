/* One host's endpoint as a program: a plan on standard input, frames on a packet socket, a report
 * on standard output. No other program touches the data on its way.
 *
 * Input, a line each:
 *
 *   host interface=h1-eth0 dilation=250 timeout=2000000000 delay=1000
 *   host interface=h1-eth0,h1-eth1 ...      of an endpoint with several ports, in their order
 *   endpoint ... / qp ... / send ... / receive ... / compute ... / after ...     see script.h
 *   arrival_times FD IN OUT [IN OUT]...   where in an open file arrival_times.h is for what comes by a port, and for what goes
 *   notes PATH            write down there what begins and ends, for who watches meanwhile
 *   ready                 open the socket
 *   link BPS PORT         once it is ready: the link has another rate from now on
 *   up IS_UP PORT         once it is ready: the port has lost its link (0), or has one again (1)
 *   deny QP HEX           once it is ready: a controller's word of which ways not to use, in place of what
 *                         it said before: bit i is entropy i. One that would leave none is not heard
 *   key ... / use ...     at any time: a controller's word of keys, see script.h
 *   start NS              begin when CLOCK_MONOTONIC shows NS; that instant is fabric time 0
 *   stop                  report and leave; the end of the input means the same
 *
 * Output:
 *
 *   refused N TEXT        line N is wrong; nothing was sent; exit status 2
 *   ready
 *   qp-error NUMBER REASON NS
 *   lost PORT FRAMES      so many by now came by a port and found no room: we had no turn for too long
 *   done NS               every transfer has ended, well or not; it still answers its peers
 *   wild END WHERE           what an algorithm did that somebody brought (cc/pcm/program.h)
 *   transfer ... / counter ... / paused ...                the report, see script.h
 *   late NS TIMES         how many frames were handed over so much late; a line for each NS
 *   end
 *
 * What is written down, after a line that says when it began by CLOCK_MONOTONIC; a file that was there
 * before is another from then on, which is how one notices:
 *
 *   epoch NS
 *   began ID NS           a message was posted here
 *   ended ID NS           a message has arrived here whole
 *
 * Times are fabric nanoseconds: one of them lasts `dilation` real ones. A timeout (0: none) ends
 * the run with what there is. With a delay the cable is part of the host: a frame is kept until its
 * last bit would have come out at the other end, and then handed over whole. Without, frames go as
 * soon as they may, many at a time. Where whoever is at the other end tells when frames are due, and asks to be
 * told (arrival_times.h), they are handed over as they leave, and wait there. What came without is taken in at the
 * instant at which the kernel had it, and all else at its own. So nothing is late but what should have
 * been handed over meanwhile. The kernel would answer RoCE packets with "port unreachable", so a
 * socket nobody reads owns the ports, as an adapter would.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "arrival_times.h"
#include "cc/pcm/program.h"
#include "script.h"
#include "tss.h"
#include "uet_wire.h"

enum {
    BATCH = 64,
    WIRE_MAX = 1024, /* frames that a cable holds; more than that, and the adapter has to wait */
    SLOT = 16384,
    SOCKET_BUFFER = 64 << 20,
    FRAME_NOTES = 1024, /* headers, and what the kernel notes of a frame in a socket */
    ETH_P_EVERY = 0x0003,
    LIVELY = 2, /* turns to which frames came, less those to which none did: none is listened for then */
    STEPS_MAX = 256, /* that a host takes one after the other, when it is late */
    LATE_STEPS = 8, /* of each power of two */
    LATE_BUCKETS = 64 * LATE_STEPS,
    EXIT_REFUSED = 2,
};

#define HOST_LINE "host interface=NAME[,NAME...] dilation=D timeout=NS delay=NS"
#define NS_PER_S 1000000000u
#define LONGEST_NAP NS_PER_S
#define LOOK_NS 50000000u /* between two looks for losses */

struct stamp { /* room for what the kernel says of when a frame came */
    _Alignas(struct cmsghdr) uint8_t room[CMSG_SPACE(sizeof(struct timespec))];
};

/* Memory for frames on their way to or from the socket. */
struct frames {
    struct mmsghdr *headers;
    struct iovec *vectors;
    struct stamp *stamps; /* of frames received */
    uint8_t (*slots)[SLOT];
};

/* What has left the adapter and not yet arrived, in the order of both: a ring. */
struct wire {
    struct frames frames;
    ns_t arrives[WIRE_MAX], leaves[WIRE_MAX]; /* leaves: when to hand it over */
    unsigned first, count;
    bool is_blocked; /* the socket takes no more */
};

/* A port: its interface, and the cable that begins there. */
struct lane {
    char interface[IFNAMSIZ];
    int socket;
    bps_t rate;
    struct wire wire;
    struct frames in; /* of which these are yet to be taken in: */
    ns_t due[BATCH];
    unsigned next, count;
    struct arrival_times *arrivals_in, *arrivals_out; /* or NULL */
    uint64_t arrivals_seen;
    uint64_t lost_on_send, lost; /* lost: on their way to us, and so many were said */
};

struct host {
    struct script script;
    struct lane lanes[EP_PORTS];
    unsigned ports; /* as many interfaces as were named */
    uint64_t dilation;
    ns_t timeout, delay;
    uint64_t epoch; /* CLOCK_MONOTONIC at fabric time 0 */
    ns_t wake, served; /* when something is due, and up to when all of it was done */
    uint64_t late[LATE_BUCKETS];
    FILE *notes; /* or NULL */
    bool is_ready, said_done, said_wild;
    bool came; /* frames, this turn */
    unsigned lively;
    unsigned turns;
    uint64_t looked; /* by the real clock, for losses */
    char words[4096]; /* that have come, up to the last line's beginning */
    size_t n_words;
};

static uint64_t real_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static ns_t fabric_now(const struct host *host)
{
    return (real_now() - host->epoch) / host->dilation;
}

/* Lateness, in buckets an eighth of a power of two wide. */
static unsigned late_bucket(ns_t late)
{
    if (late < LATE_STEPS)
        return (unsigned)late;
    unsigned power = 63 - (unsigned)__builtin_clzll(late);
    return (power - 2) * LATE_STEPS + (unsigned)(late >> (power - 3) & 7);
}

static ns_t late_floor(unsigned bucket)
{
    if (bucket < LATE_STEPS)
        return bucket;
    unsigned power = bucket / LATE_STEPS + 2;
    return (ns_t)(8 + bucket % LATE_STEPS) << (power - 3);
}

static void note_late(struct host *host, ns_t late) { host->late[late_bucket(late)]++; }

static void serve(struct host *host, ns_t at)
{
    host->served = at;
    host->wake = plan_service(host->script.plan, at);
}

/* Do what was due before: each at its own instant, so that it does not matter how late we are. */
static void catch_up(struct host *host, ns_t until)
{
    for (unsigned steps = 0; host->wake < until && steps < STEPS_MAX; steps++)
        serve(host, host->wake > host->served ? host->wake : host->served);
}

static void say_late(const struct host *host)
{
    for (unsigned i = 0; i < LATE_BUCKETS; i++)
        if (host->late[i])
            printf("late %llu %llu\n", (unsigned long long)late_floor(i),
                   (unsigned long long)host->late[i]);
}

static bool frames_init(struct frames *frames, unsigned count)
{
    frames->headers = calloc(count, sizeof *frames->headers);
    frames->vectors = calloc(count, sizeof *frames->vectors);
    frames->slots = calloc(count, SLOT);
    if (!frames->headers || !frames->vectors || !frames->slots)
        return false;
    for (unsigned i = 0; i < count; i++) {
        frames->vectors[i] = (struct iovec){frames->slots[i], SLOT};
        frames->headers[i].msg_hdr.msg_iov = &frames->vectors[i];
        frames->headers[i].msg_hdr.msg_iovlen = 1;
    }
    return true;
}

static void frames_free(struct frames *frames)
{
    free(frames->headers);
    free(frames->vectors);
    free(frames->stamps);
    free(frames->slots);
}

/* When a cable has something to hand over, unless its socket takes no more. */
static ns_t next_arrival(const struct host *host)
{
    ns_t next = NS_NEVER;
    for (unsigned port = 0; port < host->ports; port++) {
        const struct wire *wire = &host->lanes[port].wire;
        if (wire->count && !wire->is_blocked && wire->leaves[wire->first] < next)
            next = wire->leaves[wire->first];
    }
    return next;
}

/* The port whose next frame is due first; NULL if none has any. */
static struct lane *first_due(struct host *host)
{
    struct lane *first = NULL;
    for (unsigned port = 0; port < host->ports; port++) {
        struct lane *lane = &host->lanes[port];
        if (lane->next < lane->count && (!first || lane->due[lane->next] < first->due[first->next]))
            first = lane;
    }
    return first;
}

/* When there is something to do. */
static ns_t next_due(struct host *host)
{
    const struct lane *lane = first_due(host);
    ns_t arrival = next_arrival(host), next = arrival < host->wake ? arrival : host->wake;
    return lane && lane->due[lane->next] < next ? lane->due[lane->next] : next;
}

/* Frames at the head of the wire that are to be handed over and lie one after the other in memory. */
static unsigned arrived(const struct wire *wire, ns_t now)
{
    unsigned n = 0;
    while (n < wire->count && wire->first + n < WIRE_MAX && wire->leaves[wire->first + n] <= now)
        n++;
    return n;
}

/* Hand over what has arrived. What the interface refuses is lost, as on a wire that is unplugged. */
static void deliver(struct host *host, struct lane *lane, ns_t now)
{
    struct wire *wire = &lane->wire;
    wire->is_blocked = false;
    for (unsigned n; (n = arrived(wire, now)) != 0;) {
        int sent = sendmmsg(lane->socket, wire->frames.headers + wire->first, n, MSG_DONTWAIT);
        if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS)) {
            wire->is_blocked = true;
            return;
        }
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            lane->lost_on_send++;
        unsigned gone = sent < 0 ? 1 : (unsigned)sent;
        for (unsigned i = 0; i < gone; i++)
            note_late(host, now > wire->arrives[wire->first + i]
                                ? now - wire->arrives[wire->first + i]
                                : 0);
        wire->first = (wire->first + gone) % WIRE_MAX;
        wire->count -= gone;
    }
    if (!wire->count)
        wire->first = 0; /* memory that is warm */
}

static void deliver_all(struct host *host, ns_t now)
{
    for (unsigned port = 0; port < host->ports; port++)
        deliver(host, &host->lanes[port], now);
}

static ns_t arrival(const struct host *host, const struct lane *lane, uint32_t bytes, ns_t at)
{
    const struct ep_config *config = ep_get_config(plan_endpoint(host->script.plan));
    return at + ns_after_ps(ps_for_bytes(bytes + config->overhead_bytes, lane->rate)) +
           host->delay;
}

static bool transmit(void *ctx, const uint8_t *frame, uint32_t stored, uint32_t bytes, uint8_t port,
                     uint8_t priority, ns_t at)
{
    struct host *host = ctx;
    struct lane *lane = &host->lanes[port];
    struct wire *wire = &lane->wire;
    unsigned most = host->delay ? WIRE_MAX : BATCH;
    (void)priority;
    if (wire->count >= most)
        deliver(host, lane, fabric_now(host));
    if (wire->count >= most)
        return false;
    unsigned last = (wire->first + wire->count++) % WIRE_MAX;
    memcpy(wire->frames.slots[last], frame, stored);
    wire->frames.vectors[last].iov_len = stored;
    wire->arrives[last] = host->delay ? arrival(host, lane, bytes, at) : at;
    wire->leaves[last] = wire->arrives[last];
    if (arrival_times_are_read(lane->arrivals_out)) {
        if (arrival_has_room(lane->arrivals_out))
            wire->leaves[last] = at;
        arrival_note(lane->arrivals_out, frame, stored, host->epoch + wire->arrives[last] * host->dilation);
    }
    return true;
}

static void say_qp_error(void *ctx, const struct qp *qp, enum ep_error error, ns_t at)
{
    (void)ctx;
    printf("qp-error %u %s %llu\n", qp_number(qp), ep_error_name(error), (unsigned long long)at);
    fflush(stdout);
}

static void note_began(void *ctx, const struct transfer *transfer)
{
    struct host *host = ctx;
    if (host->notes && transfer->kind == TRANSFER_SEND)
        fprintf(host->notes, "began %u %llu\n", transfer->message.id,
                (unsigned long long)transfer->start);
}

static void note_ended(void *ctx, const struct transfer *transfer)
{
    struct host *host = ctx;
    if (host->notes && transfer->kind == TRANSFER_RECEIVE && transfer->state == TRANSFER_DONE)
        fprintf(host->notes, "ended %u %llu\n", transfer->message.id,
                (unsigned long long)transfer->end);
}

static bool refuse(struct host *host, const char *text, const char *detail)
{
    snprintf(host->script.problem, sizeof host->script.problem, text, detail);
    return false;
}

static bool own_port(uint8_t ip, uint16_t port)
{
    int family = ip == 6 ? AF_INET6 : AF_INET;
    int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0), one = 1;
    /* Both families begin with the port, and an address of zeroes is any. */
    struct sockaddr_in6 any = {.sin6_family = (sa_family_t)family, .sin6_port = htons(port)};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &one, sizeof one);
    return fd >= 0 && !bind(fd, (struct sockaddr *)&any, sizeof any);
}

static bool fits_interface(struct host *host, const struct lane *lane,
                           const struct ep_config *config)
{
    struct ifreq request = {0};
    uint32_t roce = WIRE_INT_SHIM + WIRE_INT_MD + WIRE_BTH + WIRE_RETH + WIRE_IMMDT;
    uint32_t uet = UET_PDS + UET_PDS_CREDIT + UET_SES;
    uint32_t headers = (config->ip == 6 ? WIRE_IPV6 : WIRE_IPV4) + WIRE_UDP;
    uint32_t security = config->security ? tss_header_bytes(true) + TSS_ICV : 0;
    uint32_t needed = headers + (roce > uet ? roce : uet) + security + config->mtu + WIRE_ICRC;
    memcpy(request.ifr_name, lane->interface, sizeof request.ifr_name);
    if (ioctl(lane->socket, SIOCGIFMTU, &request))
        return refuse(host, "interface %s does not tell its MTU", lane->interface);
    if ((uint32_t)request.ifr_mtu >= needed)
        return true;
    snprintf(host->script.problem, sizeof host->script.problem,
             "interface %s has an MTU of %d; a path MTU of %u needs %u: ip link set %s mtu %u",
             lane->interface, request.ifr_mtu, config->mtu, needed, lane->interface, needed);
    return false;
}

/* How many frames may wait in the socket: one takes what is the next power of two, and what the kernel
 * notes of it. */
static uint32_t room_in(const struct lane *lane, const struct ep_config *config)
{
    int bytes = 0;
    socklen_t size = sizeof bytes;
    getsockopt(lane->socket, SOL_SOCKET, SO_RCVBUF, &bytes, &size);
    uint32_t room = (uint32_t)bytes / (2 * (config->mtu + FRAME_NOTES));
    return room ? room : 1;
}

static bool open_lane(struct host *host, struct lane *lane)
{
    int one = 1, buffer = SOCKET_BUFFER;
    unsigned index = if_nametoindex(lane->interface);
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET,
        .sll_protocol = htons(ETH_P_EVERY),
        .sll_ifindex = (int)index,
    };
    if (!index)
        return refuse(host, "there is no interface '%s'", lane->interface);
    lane->socket = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (lane->socket < 0)
        return refuse(host, "no packet socket: %s", strerror(errno));
    setsockopt(lane->socket, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one);
    setsockopt(lane->socket, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
    /* Who is not root gets what all may have (net.core.rmem_max), twice what there is unasked, or more. */
    if (setsockopt(lane->socket, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer))
        setsockopt(lane->socket, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    if (setsockopt(lane->socket, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof buffer))
        setsockopt(lane->socket, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
    if (bind(lane->socket, (struct sockaddr *)&address, sizeof address))
        return refuse(host, "cannot listen on the interface: %s", strerror(errno));
    const struct ep_config *config = ep_get_config(plan_endpoint(host->script.plan));
    lane->rate = config->link_bps;
    lane->in.stamps = calloc(BATCH, sizeof *lane->in.stamps);
    if (!frames_init(&lane->wire.frames, WIRE_MAX) || !frames_init(&lane->in, BATCH) ||
        !lane->in.stamps)
        return refuse(host, "%s", "memory is short");
    if (lane->arrivals_in)
        arrival_read(lane->arrivals_in, &lane->arrivals_seen, room_in(lane, config));
    return fits_interface(host, lane, config);
}

static bool open_lanes(struct host *host)
{
    const struct ep_config *config = ep_get_config(plan_endpoint(host->script.plan));
    if (config->ports != host->ports)
        return refuse(host, "%s", "the endpoint has as many ports as interfaces are named");
    for (unsigned port = 0; port < host->ports; port++)
        if (!open_lane(host, &host->lanes[port]))
            return false;
    uint16_t ports[] = {ROCE_PORT, UET_PORT, INC_PORT, config->int_port};
    bool own = true;
    for (size_t i = 0; i < sizeof ports / sizeof *ports; i++)
        own = own && own_port(config->ip, ports[i]);
    return own || refuse(host, "the UDP ports of RoCE, UET or collectives are taken: %s", strerror(errno));
}

/* The interfaces' names, a comma between two. */
static bool name_lanes(struct host *host, char *names)
{
    char *rest = names;
    for (char *name; (name = strsep(&rest, ","));) {
        if (!*name || strlen(name) >= IFNAMSIZ || host->ports == EP_PORTS)
            return false;
        strcpy(host->lanes[host->ports++].interface, name);
    }
    return true;
}

static bool read_host(struct host *host, char *rest)
{
    unsigned long long dilation, timeout, delay;
    char extra, names[EP_PORTS * IFNAMSIZ];
    int found = sscanf(rest, " interface=%127s dilation=%llu timeout=%llu delay=%llu %c",
                       names, &dilation, &timeout, &delay, &extra);
    if (found != 4 || !dilation || host->ports || !name_lanes(host, names))
        return refuse(host, "a host line is: %s", HOST_LINE);
    host->dilation = dilation;
    host->timeout = timeout ? timeout : NS_NEVER;
    host->delay = delay;
    return true;
}

static bool take_notes(struct host *host, char *path)
{
    path[strcspn(path, "\n")] = 0;
    unlink(path);
    host->notes = fopen(path, "we");
    return host->notes || refuse(host, "no notes can be written: %s", strerror(errno));
}

static bool take_arrival_times(struct host *host, const char *rest)
{
    int file, read, port = 0;
    unsigned long long in, out;
    struct stat found;
    if (sscanf(rest, "%d%n", &file, &read) != 1)
        return refuse(host, "%s", "'arrival_times' needs an open file, and two places in it for each port");
    uint8_t *all = MAP_FAILED;
    if (!fstat(file, &found))
        all = mmap(NULL, (size_t)found.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (all == MAP_FAILED)
        return refuse(host, "what is due cannot be told: %s", strerror(errno));
    for (rest += read; sscanf(rest, " %llu %llu%n", &in, &out, &read) == 2; rest += read) {
        struct lane *lane = &host->lanes[port];
        if (port++ == (int)host->ports)
            return refuse(host, "%s", "'arrival_times' has places for more ports than there are");
        lane->arrivals_in = arrival_at(all, (uint64_t)found.st_size, in);
        lane->arrivals_out = arrival_at(all, (uint64_t)found.st_size, out);
        if (!lane->arrivals_in || !lane->arrivals_out)
            return refuse(host, "%s", "'arrival_times' names a place that its file does not have");
    }
    if (port != (int)host->ports || rest[strspn(rest, " \n")])
        return refuse(host, "%s", "'arrival_times' needs two places for each port");
    return true;
}

static bool get_ready(struct host *host)
{
    if (!host->script.plan)
        return refuse(host, "%s", "there is no endpoint yet");
    if (host->is_ready)
        return refuse(host, "%s", "'ready' was said before");
    if (!open_lanes(host))
        return false;
    host->is_ready = true;
    printf("ready\n");
    fflush(stdout);
    return true;
}

static bool take_start(struct host *host, const char *rest)
{
    unsigned long long epoch;
    if (!host->is_ready)
        return refuse(host, "%s", "'ready' comes before 'start'");
    if (sscanf(rest, "%llu", &epoch) != 1)
        return refuse(host, "%s", "'start' needs a time of the monotonic clock");
    host->epoch = epoch;
    if (host->notes)
        fprintf(host->notes, "epoch %llu\n", epoch);
    return true;
}

static bool take_link(struct host *host, const char *line)
{
    unsigned long long link_bps;
    unsigned port;
    if (sscanf(line, "link %llu %u", &link_bps, &port) != 2 || !link_bps || port >= host->ports)
        return refuse(host, "%s", "'link' needs a rate in bits a second, and a port");
    host->lanes[port].rate = link_bps;
    ep_set_link(plan_endpoint(host->script.plan), (uint8_t)port, link_bps);
    return true;
}

static bool take_up(struct host *host, const char *line)
{
    unsigned is_up, port;
    if (sscanf(line, "up %u %u", &is_up, &port) != 2 || is_up > 1 || port >= host->ports)
        return refuse(host, "%s", "'up' needs 1 or 0, and a port");
    ep_set_up(plan_endpoint(host->script.plan), (uint8_t)port, is_up, host->epoch ? fabric_now(host) : 0);
    return true;
}

/* A word about the network, once there is an endpoint; nothing else comes then. */
static bool take_news(struct host *host, const char *line)
{
    if (!strncmp(line, "link ", 5))
        return take_link(host, line);
    if (!strncmp(line, "up ", 3))
        return take_up(host, line);
    if (script_is_key(line))
        return script_key(&host->script, line);
    if (!strncmp(line, "deny ", 5))
        return script_denial(&host->script, line, host->epoch ? fabric_now(host) : 0);
    return refuse(host, "'%.60s' comes before 'ready'", line);
}

static bool take_line(struct host *host, char *line)
{
    if (!strncmp(line, "host ", 5))
        return read_host(host, line + 5);
    if (!host->dilation)
        return refuse(host, "the first line is: %s", HOST_LINE);
    if (!strncmp(line, "notes ", 6) && !host->notes)
        return take_notes(host, line + 6);
    if (!strncmp(line, "arrival_times ", 14) && !host->is_ready)
        return take_arrival_times(host, line + 14);
    if (!strcmp(line, "ready\n"))
        return get_ready(host);
    if (!strncmp(line, "start ", 6))
        return take_start(host, line + 6);
    return host->is_ready ? take_news(host, line) : script_line(&host->script, line);
}

/* Everything up to `start`. False if the input is wrong or ends before. */
static bool set_up(struct host *host)
{
    char *line = NULL;
    size_t room = 0;
    bool right = true;

    for (unsigned at = 1; right && !host->epoch; at++) {
        if (getline(&line, &room, stdin) <= 0)
            break;
        right = take_line(host, line);
        if (!right)
            printf("refused %u %s\n", at, host->script.problem);
    }
    free(line);
    return right && host->epoch;
}

/* When the kernel had a frame, by CLOCK_REALTIME; 0 if it does not say. */
static uint64_t stamp_of(struct msghdr *header)
{
    struct timespec t = {0};
    const struct cmsghdr *said = CMSG_FIRSTHDR(header);
    if (said && said->cmsg_level == SOL_SOCKET && said->cmsg_type == SCM_TIMESTAMPNS)
        memcpy(&t, CMSG_DATA(said), sizeof t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* When a frame is due, by the fabric's time; or when the kernel had it, which is by now; or now. */
static ns_t due(const struct host *host, struct lane *lane, unsigned i, uint64_t behind)
{
    struct msghdr *header = &lane->in.headers[i].msg_hdr;
    uint64_t real = real_now(), at = 0;
    if (lane->arrivals_in)
        at = arrival_find(lane->arrivals_in, &lane->arrivals_seen, lane->in.slots[i],
                       lane->in.headers[i].msg_len);
    if (!at) {
        uint64_t stamp = stamp_of(header);
        at = stamp && stamp < behind + real ? stamp - behind : real;
    }
    return at > host->epoch ? (at - host->epoch) / host->dilation : 0;
}

/* Fetch what has come by a port, if all that came before was taken in. */
static void fetch(struct host *host, struct lane *lane)
{
    const struct frames *in = &lane->in;
    struct timespec t;
    if (lane->next < lane->count)
        return;
    for (unsigned i = 0; i < BATCH; i++) {
        in->headers[i].msg_hdr.msg_control = &in->stamps[i];
        in->headers[i].msg_hdr.msg_controllen = sizeof in->stamps[i];
    }
    int n = recvmmsg(lane->socket, in->headers, BATCH, MSG_DONTWAIT, NULL);
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t behind = (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec - real_now();
    lane->next = 0;
    lane->count = n > 0 ? (unsigned)n : 0;
    host->came |= n > 0;
    for (unsigned i = 0; i < lane->count; i++)
        lane->due[i] = due(host, lane, i, behind);
}

/* Take in what is due by then, of all ports in the order in which it is; whether there was any. */
static bool receive_some(struct host *host, ns_t until)
{
    struct lane *lane;
    bool some = false;
    for (unsigned port = 0; port < host->ports; port++)
        fetch(host, &host->lanes[port]);
    while ((lane = first_due(host)) && lane->due[lane->next] <= until) {
        unsigned i = lane->next++;
        uint32_t length = lane->in.headers[i].msg_len;
        catch_up(host, lane->due[i]);
        ns_t at = lane->due[i] > host->served ? lane->due[i] : host->served;
        plan_receive(host->script.plan, (uint8_t)(lane - host->lanes), lane->in.slots[i], length,
                     length, at);
        serve(host, at);
        some = true;
    }
    return some;
}

/* Take the words that have come, whole lines of them. False: it is time to stop. */
static bool goes_on(struct host *host)
{
    size_t room = sizeof host->words - 1 - host->n_words;
    ssize_t length = read(STDIN_FILENO, host->words + host->n_words, room);
    if (length <= 0)
        return false;
    host->n_words += (size_t)length;
    host->words[host->n_words] = 0;
    char *line = host->words, *end;
    for (; (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        if (!take_news(host, line))
            return false;
    }
    host->n_words = strlen(line);
    memmove(host->words, line, host->n_words + 1);
    return host->n_words < sizeof host->words - 1;
}

/* What found no room in a port's socket since the last look. */
static uint64_t drops_of(const struct lane *lane)
{
    struct tpacket_stats kernel = {0};
    socklen_t size = sizeof kernel;
    getsockopt(lane->socket, SOL_PACKET, PACKET_STATISTICS, &kernel, &size);
    return kernel.tp_drops;
}

/* Say at once what was lost on the way to us: who runs us may not want to wait until it is made up for. */
static void look_for_losses(struct host *host)
{
    uint64_t now = real_now();
    if (now - host->looked < LOOK_NS)
        return;
    host->looked = now;
    for (unsigned port = 0; port < host->ports; port++) {
        struct lane *lane = &host->lanes[port];
        uint64_t drops = drops_of(lane);
        lane->lost += drops;
        if (drops) {
            printf("lost %u %llu\n", port, (unsigned long long)lane->lost);
            fflush(stdout);
        }
    }
}

/* How late a turn may be: not at all if anybody sees frames when they leave, or has no room for those that
 * are under way. */
static ns_t slack(const struct host *host)
{
    for (unsigned port = 0; port < host->ports; port++) {
        const struct lane *lane = &host->lanes[port];
        if (!arrival_times_are_read(lane->arrivals_out) || lane->wire.count)
            return 0;
    }
    return arrival_slack(host->delay, (double)host->dilation);
}

/* Whether to be woken by frames. Where many come one looks for them in time: none is due yet that was not
 * there half a cable's delay ago. */
static bool listens(struct host *host, ns_t late)
{
    if (host->came && host->lively < 2 * LIVELY)
        host->lively++;
    else if (!host->came && host->lively)
        host->lively--;
    host->came = false;
    return !late || host->lively < LIVELY;
}

/* Wait for a frame, a word, or `wake`; turns may be so `late`. True: it is time to stop. */
static bool nap(struct host *host, ns_t wake, ns_t late)
{
    struct pollfd files[EP_PORTS + 1], *words = &files[host->ports];
    bool is_listening = listens(host, late);
    for (unsigned port = 0; port < host->ports; port++) {
        const struct lane *lane = &host->lanes[port];
        bool is_wanted = is_listening && lane->next == lane->count; /* or more is of no use yet */
        short events = (short)((is_wanted ? POLLIN : 0) | (lane->wire.is_blocked ? POLLOUT : 0));
        files[port] = (struct pollfd){.fd = events ? lane->socket : -1, .events = events};
    }
    *words = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    ns_t until = wake < host->timeout ? wake : host->timeout;
    uint64_t left = is_listening ? LONGEST_NAP : host->delay / 2 * host->dilation;
    if (until != NS_NEVER) {
        uint64_t due = host->epoch + until * host->dilation, now = real_now();
        left = due <= now ? 0 : due - now < left ? due - now : left;
    }
    if (host->notes)
        fflush(host->notes); /* nothing, most of the time */
    struct timespec limit = {(time_t)(left / NS_PER_S), (long)(left % NS_PER_S)};
    return ppoll(files, host->ports + 1, &limit, NULL) > 0 && words->revents && !goes_on(host);
}

static void look_for_wild(struct host *host)
{
    const struct pcm_fault *fault =
        pcm_fault_of(ep_get_config(plan_endpoint(host->script.plan))->cc);
    if (!fault || host->said_wild)
        return;
    host->said_wild = true;
    printf("wild %llu %llu\n", (unsigned long long)fault->end, (unsigned long long)fault->where);
    fflush(stdout);
}

/* Whether more may have come than was fetched. */
static bool is_full(const struct host *host)
{
    bool is_full = false;
    for (unsigned port = 0; port < host->ports; port++)
        is_full = is_full || host->lanes[port].count == BATCH;
    return is_full;
}

static void run(struct host *host)
{
    struct plan *plan = host->script.plan;
    ns_t now;

    struct timespec epoch = {(time_t)(host->epoch / NS_PER_S), (long)(host->epoch % NS_PER_S)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &epoch, NULL) == EINTR)
        ;
    plan_start(plan, 0);
    host->wake = 0;
    for (bool stop = false; !stop;) {
        now = fabric_now(host);
        bool busy = receive_some(host, now);
        ns_t late = slack(host);
        busy = busy && (!late || is_full(host));
        catch_up(host, now);
        serve(host, now > host->served ? now : host->served);
        now = fabric_now(host);
        deliver_all(host, now);
        if (!plan_open(plan) && !host->said_done) {
            host->said_done = true;
            printf("done %llu\n", (unsigned long long)now);
            fflush(stdout);
        }
        if (now >= host->timeout)
            return;
        if (!busy || !(++host->turns % 64)) {
            look_for_losses(host);
            look_for_wild(host);
            ns_t due = next_due(host);
            stop = nap(host, busy ? 0 : due < NS_NEVER - late ? due + late : due, late);
        }
    }
}

static void report(struct host *host)
{
    uint64_t drops = 0, refused = 0;
    script_report(host->script.plan, stdout, fabric_now(host));
    for (unsigned port = 0; port < host->ports; port++) {
        drops += host->lanes[port].lost + drops_of(&host->lanes[port]);
        refused += host->lanes[port].lost_on_send;
    }
    printf("counter socket_drops %llu\n", (unsigned long long)drops);
    printf("counter interface_refused %llu\n", (unsigned long long)refused);
    say_late(host);
    printf("end\n");
}

int main(void)
{
    static struct host host;
    host.script.port = (struct plan_port){
        .ctx = &host,
        .transmit = transmit,
        .began = note_began,
        .ended = note_ended,
        .qp_error = say_qp_error,
    };
    setvbuf(stdin, NULL, _IOLBF, 0);
    prctl(PR_SET_TIMERSLACK, 1);
    bool fine = set_up(&host);
    if (fine) {
        run(&host);
        for (unsigned port = 0; port < host.ports; port++)
            if (host.lanes[port].arrivals_in)
                arrival_read(host.lanes[port].arrivals_in, &host.lanes[port].arrivals_seen, 0);
        report(&host);
    }
    plan_free(host.script.plan);
    for (unsigned port = 0; port < host.ports; port++) {
        frames_free(&host.lanes[port].in);
        frames_free(&host.lanes[port].wire.frames);
    }
    return fine ? 0 : EXIT_REFUSED;
}
