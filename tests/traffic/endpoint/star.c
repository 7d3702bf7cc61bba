/* A test fabric in virtual time: endpoints around one switch, and everything that can go wrong.
 *
 *   endpoint ──delay──► faults ──► egress queue of the destination ──delay──► endpoint
 *
 * The switch forwards by the last four bytes of an IP destination, or SUNH's two, one queue a host, drained at the link's rate; it marks
 * congestion by Kmin, Kmax and Pmax at dequeue, appends INT metadata to packets that carry INT, and
 * drops what is more than `limit`. Input, a line each, the hosts' own plans as in script.h:
 *
 *   fabric seed=N delay=NS rate=BPS limit=BYTES kmin=BYTES kmax=BYTES pmax=P
 *          loss=P duplicate=P reorder=P corrupt=P cut=P shake=NS timeout=NS
 *          trim=1 keep=BYTES    what is more than `limit` is cut to 64 bytes, or so many, if it is UET's or
 *                               MRC's data
 *          late=NS              endpoints are woken up to so much later than they ask
 *   host ADDRESS                  the plan that follows is this host's
 *   pause ADDRESS at=NS priority=N quanta=N
 *   mark ADDRESS at=NS            the next data packet to this host from then on is marked
 *   lose ADDRESS nth=N            the host's frame of this number is lost, the first being 0
 *   kill ADDRESS at=NS            from then on it neither sends nor receives
 *   deny ADDRESS at=NS QP HEX     a controller's word to this host: see script.h
 *   tell ADDRESS at=NS WORDS      likewise, of keys
 *   inject ADDRESS at=NS HEX      a frame that nobody sent arrives at this host
 *   sample ADDRESS qp=N every=NS  print the queue pair's state as time goes
 *   watch ADDRESS                 print every frame that the host sends
 *   capture ADDRESS               print every frame's bytes that the host sends
 *   run
 *
 * Output: `sample`, `frame`, `bytes` and `qp-error` lines as they happen, then for each host
 * `host ADDRESS` and its report, `switch MARKED DROPPED LONGEST-QUEUE`, and `end NS`. The run ends
 * when no host has anything open, when nothing is left to happen, or at the timeout. An endpoint
 * that breaks its own contract (frames that overlap, frames in a pause, a wake in the past) ends
 * the run with `broken TEXT` and status 3.
 */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "qp.h"
#include "script.h"
#include "mrc_wire.h"
#include "sue_wire.h"
#include "uet_wire.h"

enum { HOSTS = 64, NTH = 512, INT_PORT = 20052, FRAME = 10240 };
enum { EXIT_BAD_INPUT = 2, EXIT_BROKEN = 3 };

struct frame {
    struct frame *next;
    uint32_t stored, wire;
    struct host *to;
    uint8_t bytes[FRAME];
};

enum what { AT_SWITCH, AT_HOST, DEQUEUE, WAKE, PAUSE, MARK, KILL, SAMPLE, INJECT, DENY };

struct event {
    ns_t at;
    uint64_t order;
    enum what what;
    struct host *host;
    struct frame *frame;
    uint64_t a, b;
};

struct host {
    struct star *star;
    struct script script;
    uint32_t address;
    char name[16];
    ns_t wake, last_end, pause_from[8], pause_until[8];
    bool dead, watched, captured, mark_next, loses[NTH];
    uint32_t frames; /* that it has sent */
    struct frame *queue, **queue_end;
    bytes_t queued;
    bool draining;
    bytes_t sent; /* by the link to the host */
};

struct star {
    uint64_t random, order;
    ns_t now, delay, shake, timeout, late;
    bps_t rate;
    bool trims;
    uint32_t kept;
    bytes_t limit, kmin, kmax, longest;
    double pmax, loss, duplicate, reorder, corrupt, cut;
    uint64_t marked, dropped;
    struct host hosts[HOSTS];
    uint32_t host_count;
    struct event *events;
    uint32_t event_count, event_room;
    struct frame *spare;
};

__attribute__((noreturn, format(printf, 2, 3)))
static void quit(int status, const char *format, ...)
{
    va_list words;
    va_start(words, format);
    printf(status == EXIT_BROKEN ? "broken " : "refused ");
    vprintf(format, words);
    printf("\n");
    fflush(stdout);
    exit(status);
}

static double draw(struct star *star)
{
    star->random ^= star->random << 13;
    star->random ^= star->random >> 7;
    star->random ^= star->random << 17;
    return (double)(star->random >> 11) / (double)(1ull << 53);
}

static bool earlier(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void push(struct star *star, struct event event)
{
    if (star->event_count == star->event_room) {
        star->event_room = star->event_room ? 2 * star->event_room : 1024;
        star->events = realloc(star->events, star->event_room * sizeof *star->events);
    }
    event.order = star->order++;
    uint32_t at = star->event_count++;
    for (; at && earlier(&event, &star->events[(at - 1) / 2]); at = (at - 1) / 2)
        star->events[at] = star->events[(at - 1) / 2];
    star->events[at] = event;
}

static struct event pop(struct star *star)
{
    struct event top = star->events[0], last = star->events[--star->event_count];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < star->event_count; at = child) {
        if (child + 1 < star->event_count &&
            earlier(&star->events[child + 1], &star->events[child]))
            child++;
        if (!earlier(&star->events[child], &last))
            break;
        star->events[at] = star->events[child];
    }
    star->events[at] = last;
    return top;
}

static struct frame *take_frame(struct star *star)
{
    struct frame *frame = star->spare;
    if (!frame)
        return malloc(sizeof *frame);
    star->spare = frame->next;
    return frame;
}

static void give_back(struct star *star, struct frame *frame)
{
    frame->next = star->spare;
    star->spare = frame;
}

static ns_t duration(const struct star *star, uint32_t wire)
{
    return ns_after_ps(ps_for_bytes(wire + 24, star->rate));
}

/* Where headers stand, behind a CSIG tag or none, whichever the version of IP. */
static uint32_t ip_at(const uint8_t *bytes) { return WIRE_IP_AT + csig_bytes(be16_load(bytes + WIRE_TYPE_AT)); }

static uint8_t *ip_of(const struct frame *frame) { return (uint8_t *)frame->bytes + ip_at(frame->bytes); }

static uint8_t *udp_of(const struct frame *frame)
{
    uint8_t *ip = ip_of(frame);
    return ip + ip_bytes(ip);
}

static void lengthen(struct frame *frame, int more)
{
    uint8_t *ip = ip_of(frame), *length = ip + (ip_is_v6(ip) ? 4 : 2);
    be16_store(length, (uint16_t)(be16_load(length) + more));
}

static void print_frame(const struct host *host, const uint8_t *bytes, uint32_t stored,
                        uint32_t wire, ns_t at)
{
    uint32_t ip = ip_at(bytes), udp = ip + ip_bytes(bytes + ip), bth = udp + WIRE_UDP;
    if (be16_load(bytes + udp + 2) != ROCE_PORT)
        bth += WIRE_INT_SHIM + 4u * bytes[bth + 1];
    if (host->watched)
        printf("frame %s %llu %u opcode=%u psn=%u wire=%u\n", host->name, (unsigned long long)at,
               ip_tos(bytes + ip) >> 5, bytes[bth], be24_load(bytes + bth + 9), wire);
    if (!host->captured)
        return;
    printf("bytes ");
    for (uint32_t i = 0; i < stored; i++)
        printf("%02x", bytes[i]);
    printf("\n");
}

static bool transmit(void *ctx, const uint8_t *bytes, uint32_t stored, uint32_t wire,
                     uint8_t port, uint8_t priority, ns_t at)
{
    (void)port;
    struct host *host = ctx;
    struct star *star = host->star;
    const struct ep_config *config = ep_get_config(plan_endpoint(host->script.plan));

    if (at + 1 < host->last_end)
        quit(EXIT_BROKEN, "%s sends at %llu, before the last frame has left", host->name,
             (unsigned long long)at);
    if (at > star->now + 2 * ps_for_bytes(config->mtu + 200, config->link_bps) / 1000)
        quit(EXIT_BROKEN, "%s sends at %llu, far ahead of its time", host->name,
             (unsigned long long)at);
    if (at >= host->pause_from[priority] && at < host->pause_until[priority])
        quit(EXIT_BROKEN, "%s sends on priority %u while paused", host->name, priority);
    host->last_end = at + ps_for_bytes(wire + config->overhead_bytes, config->link_bps) / 1000;
    print_frame(host, bytes, stored, wire, at);
    bool is_chosen = host->frames < NTH && host->loses[host->frames];
    host->frames++;
    if (host->dead || is_chosen || draw(star) < star->loss)
        return true;
    for (int copies = draw(star) < star->duplicate ? 2 : 1; copies; copies--) {
        struct frame *frame = take_frame(star);
        frame->stored = stored;
        frame->wire = wire;
        memcpy(frame->bytes, bytes, stored);
        if (draw(star) < star->corrupt)
            for (int flips = 1 + (int)(draw(star) * 4); flips; flips--) {
                uint8_t bit = (uint8_t)(1 << (int)(draw(star) * 8));
                frame->bytes[(uint32_t)(draw(star) * stored)] ^= bit;
            }
        if (draw(star) < star->cut)
            frame->stored = frame->wire = (uint32_t)(draw(star) * stored);
        ns_t arrival = at + duration(star, wire) + star->delay;
        if (draw(star) < star->reorder)
            arrival += (ns_t)(draw(star) * (double)star->shake);
        if (arrival < star->now) /* it left late, whatever its endpoint accounts */
            arrival = star->now;
        push(star, (struct event){.at = arrival, .what = AT_SWITCH, .frame = frame});
    }
    return true;
}

static void report_error(void *ctx, const struct qp *qp, enum ep_error error, ns_t at)
{
    (void)ctx;
    printf("qp-error %u %s %llu\n", qp_number(qp), ep_error_name(error), (unsigned long long)at);
}

static void service(struct host *host)
{
    struct star *star = host->star;
    if (host->dead)
        return;
    ns_t wake = plan_service(host->script.plan, star->now);
    if (wake <= star->now)
        quit(EXIT_BROKEN, "%s asks to be woken at %llu, now", host->name, (unsigned long long)wake);
    if (wake == host->wake)
        return;
    host->wake = wake;
    if (star->late && wake != NS_NEVER)
        host->wake = wake += (ns_t)(draw(star) * (double)star->late);
    if (wake != NS_NEVER)
        push(star, (struct event){.at = wake, .what = WAKE, .host = host});
}

static bool is_data(const struct frame *frame) 
{
    return ip_tos(ip_of(frame)) >> 2 == 26;
}

/* Append what this queue's INT metadata is: queue id and occupancy, and, if our domain's words are
 * asked for, the link's rate in Mb/s, the time, and the bytes sent before. */
static void push_int(const struct star *star, struct host *to, struct frame *frame)
{
    uint8_t *udp = udp_of(frame), *shim = udp + WIRE_UDP, word[16];
    uint8_t *stack = shim + WIRE_INT_SHIM + WIRE_INT_MD;
    if (be16_load(frame->bytes + WIRE_TYPE_AT) == ETHERTYPE_SUNH || be16_load(udp + 2) != INT_PORT ||
        frame->bytes + frame->stored < stack || !shim[7])
        return;
    uint32_t more = be16_load(shim + 12) ? 16 : 4;
    if (frame->stored + more > FRAME)
        return;
    be32_store(word, 3u << 24 | (uint32_t)(to->queued < 0xFFFFFF ? to->queued : 0xFFFFFE));
    be32_store(word + 4, (uint32_t)(star->rate / 1000000));
    be32_store(word + 8, (uint32_t)star->now);
    be32_store(word + 12, (uint32_t)to->sent);
    memmove(stack + more, stack, frame->stored - (size_t)(stack - frame->bytes));
    memcpy(stack, word, more);
    shim[1] = (uint8_t)(shim[1] + more / 4);
    shim[7]--;
    frame->stored += more;
    frame->wire += more;
    lengthen(frame, (int)more);
    be16_store(udp + 4, (uint16_t)(be16_load(udp + 4) + more));
}

static void mark(struct star *star, struct host *to, struct frame *frame)
{
    double p = 0;
    if (to->queued >= star->kmax)
        p = 1;
    else if (to->queued > star->kmin)
        p = star->pmax * (double)(to->queued - star->kmin) / (double)(star->kmax - star->kmin);
    if (!is_data(frame) || !(to->mark_next || (star->kmax && draw(star) < p)))
        return;
    to->mark_next = false;
    ip_set_tos(ip_of(frame), ip_tos(ip_of(frame)) | 3);
    star->marked++;
}

static void dequeue(struct star *star, struct host *to)
{
    struct frame *frame = to->queue;
    if (!frame) {
        to->draining = false;
        return;
    }
    to->draining = true;
    to->queue = frame->next;
    if (!to->queue)
        to->queue_end = &to->queue;
    to->queued -= frame->wire;
    mark(star, to, frame);
    push_int(star, to, frame);
    to->sent += frame->wire;
    ns_t over = star->now + duration(star, frame->wire);
    push(star, (struct event){.at = over + star->delay, .what = AT_HOST, .host = to,
                              .frame = frame});
    push(star, (struct event){.at = over, .what = DEQUEUE, .host = to});
}

/* As p4src/trim.p4 does: IP tells what is left, UDP what there was. Room for it there is always. */
static bool is_cut(const struct star *star, struct frame *frame)
{
    uint8_t *ip = ip_of(frame);
    uint32_t left = star->kept - WIRE_IPV4 + ip_bytes(ip);
    const uint8_t *udp = udp_of(frame);
    bool is_mrc = be16_load(udp + 2) == ROCE_PORT && udp[WIRE_UDP] >= MRC_WRITE_FIRST;
    if (!star->trims || frame->stored <= left || !is_data(frame) ||
        (be16_load(udp + 2) != UET_PORT && !is_mrc))
        return false;
    lengthen(frame, (int)left - WIRE_ETHERNET - (int)ip_length(ip));
    frame->stored = frame->wire = left;
    ip_set_tos(ip, (uint8_t)(42 << 2 | (ip_tos(ip) & 3)));
    return true;
}

/* Of a short address the upper half is what all have in common. */
static uint32_t destination(const struct frame *frame)
{
    const uint8_t *network = frame->bytes + WIRE_ETHERNET;
    if (be16_load(frame->bytes + WIRE_TYPE_AT) == ETHERTYPE_SUNH)
        return 10u << 24 | be16_load(network + 6);
    return be32_load(udp_of(frame) - 4);
}

static void forward(struct star *star, struct frame *frame)
{
    struct host *to = NULL;
    uint32_t address = frame->stored >= 34 ? destination(frame) : 0;
    for (uint32_t i = 0; i < star->host_count; i++)
        if (frame->stored >= 34 && address == star->hosts[i].address)
            to = &star->hosts[i];
    if (!to || (to->queued + frame->wire > star->limit && !is_cut(star, frame))) {
        star->dropped += to != NULL;
        give_back(star, frame);
        return;
    }
    frame->next = NULL;
    *to->queue_end = frame;
    to->queue_end = &frame->next;
    to->queued += frame->wire;
    if (to->queued > star->longest)
        star->longest = to->queued;
    if (!to->draining)
        dequeue(star, to);
}

static void pause_host(struct host *host, unsigned priority, uint16_t quanta)
{
    struct star *star = host->star;
    const struct ep_config *config = ep_get_config(plan_endpoint(host->script.plan));
    uint8_t pfc[WIRE_PFC] = {0x01, 0x80, 0xC2, 0, 0, 0x01};
    be16_store(pfc + 12, ETHERTYPE_MAC_CONTROL);
    be16_store(pfc + 14, PFC_OPCODE);
    be16_store(pfc + 16, (uint16_t)(1u << priority));
    be16_store(pfc + 18 + 2 * priority, quanta);
    plan_receive(host->script.plan, 0, pfc, sizeof pfc, sizeof pfc, star->now);
    host->pause_from[priority] = star->now + 1;
    host->pause_until[priority] = star->now + (ns_t)quanta * 512 * 1000000000u / config->link_bps;
    service(host);
}

static void sample(struct host *host, uint32_t number, ns_t every)
{
    struct star *star = host->star;
    struct qp_state state;
    struct ep *ep = plan_endpoint(host->script.plan);
    struct qp *qp = ep_find_qp(ep, number);
    if (!qp)
        quit(EXIT_BAD_INPUT, "there is no queue pair %u at %s", number, host->name);
    qp_state(qp, star->now, &state);
    printf("sample %s %u %llu rate=%llu in-flight=%llu waiting=%llu\n", host->name,
           number,
           (unsigned long long)star->now, (unsigned long long)state.rate,
           (unsigned long long)state.in_flight, (unsigned long long)state.waiting);
    push(star, (struct event){.at = star->now + every, .what = SAMPLE, .host = host, .a = number,
                              .b = every});
}

static void deliver(struct host *host, const struct frame *frame)
{
    /* A copy of the exact size, so that a sanitizer sees a read past the end. */
    uint8_t *exact = malloc(frame->stored);
    memcpy(exact, frame->bytes, frame->stored);
    plan_receive(host->script.plan, 0, exact, frame->stored, frame->wire, host->star->now);
    free(exact);
    service(host);
}

static void happen(struct star *star, struct event event)
{
    switch (event.what) {
    case AT_SWITCH:
        forward(star, event.frame);
        break;
    case DEQUEUE:
        dequeue(star, event.host);
        break;
    case AT_HOST:
        if (!event.host->dead)
            deliver(event.host, event.frame);
        give_back(star, event.frame);
        break;
    case WAKE:
        if (event.host->wake == event.at) {
            event.host->wake = 0;
            service(event.host);
        }
        break;
    case PAUSE:
        pause_host(event.host, (unsigned)event.a, (uint16_t)event.b);
        break;
    case MARK:
        event.host->mark_next = true;
        break;
    case KILL:
        event.host->dead = true;
        break;
    case INJECT:
        deliver(event.host, event.frame);
        give_back(star, event.frame);
        break;
    case DENY:
        if (!(script_is_key((const char *)event.frame->bytes)
                  ? script_key(&event.host->script, (const char *)event.frame->bytes)
                  : script_denial(&event.host->script, (const char *)event.frame->bytes, star->now)))
            quit(EXIT_BAD_INPUT, "%s", event.host->script.problem);
        give_back(star, event.frame);
        service(event.host);
        break;
    case SAMPLE:
        sample(event.host, (uint32_t)event.a, event.b);
        break;
    }
}

static void tell_halves(const struct host *host)
{
    const struct ep *ep = plan_endpoint(host->script.plan);
    unsigned halves = 0;
    for (uint32_t i = 0; i < ep->qp_count; i++)
        halves += (ep->qps[i].out != NULL) + (ep->qps[i].in != NULL);
    printf("halves %s %u\n", host->name, halves);
}

static bool all_over(const struct star *star)
{
    for (uint32_t i = 0; i < star->host_count; i++)
        if (!star->hosts[i].dead && plan_open(star->hosts[i].script.plan))
            return false;
    return true;
}

static void run(struct star *star)
{
    for (uint32_t i = 0; i < star->host_count; i++) {
        plan_start(star->hosts[i].script.plan, 0);
        service(&star->hosts[i]);
    }
    while (star->event_count && !all_over(star)) {
        struct event event = pop(star);
        if (event.at > star->timeout)
            break;
        if (event.at < star->now)
            quit(EXIT_BROKEN, "an event lies in the past");
        star->now = event.at;
        happen(star, event);
    }
    for (uint32_t i = 0; i < star->host_count; i++) {
        printf("host %s\n", star->hosts[i].name);
        script_report(star->hosts[i].script.plan, stdout, star->now);
        tell_halves(&star->hosts[i]);
    }
    printf("switch %llu %llu %llu\n", (unsigned long long)star->marked,
           (unsigned long long)star->dropped,
           (unsigned long long)star->longest);
    printf("end %llu\n", (unsigned long long)star->now);
}

static double option(const char *line, const char *key, double otherwise)
{
    char pattern[40];
    snprintf(pattern, sizeof pattern, " %s=", key);
    const char *at = strstr(line, pattern);
    return at ? strtod(at + strlen(pattern), NULL) : otherwise;
}

static void read_fabric(struct star *star, const char *line)
{
    star->random = (uint64_t)option(line, "seed", 1) * 0x9E3779B97F4A7C15u + 1;
    star->delay = (ns_t)option(line, "delay", 1000);
    star->rate = (bps_t)option(line, "rate", 100e9);
    star->limit = (bytes_t)option(line, "limit", 1e12);
    star->kmin = (bytes_t)option(line, "kmin", 0);
    star->kmax = (bytes_t)option(line, "kmax", 0);
    star->pmax = option(line, "pmax", 0);
    star->loss = option(line, "loss", 0);
    star->duplicate = option(line, "duplicate", 0);
    star->reorder = option(line, "reorder", 0);
    star->corrupt = option(line, "corrupt", 0);
    star->cut = option(line, "cut", 0);
    star->shake = (ns_t)option(line, "shake", 10000);
    star->timeout = (ns_t)option(line, "timeout", 1e15);
    star->late = (ns_t)option(line, "late", 0);
    star->trims = option(line, "trim", 0) != 0;
    star->kept = (uint32_t)option(line, "keep", 64);
}

static struct host *host_named(struct star *star, const char *name, bool make)
{
    struct in_addr address;
    for (uint32_t i = 0; i < star->host_count; i++)
        if (!strcmp(star->hosts[i].name, name))
            return &star->hosts[i];
    if (!make || star->host_count == HOSTS || !inet_aton(name, &address))
        quit(EXIT_BAD_INPUT, "no host %s", name);
    struct host *host = &star->hosts[star->host_count++];
    host->star = star;
    host->address = ntohl(address.s_addr);
    snprintf(host->name, sizeof host->name, "%.15s", name);
    host->script.port = (struct plan_port){.ctx = host, .transmit = transmit,
                                           .qp_error = report_error};
    host->queue_end = &host->queue;
    host->wake = NS_NEVER;
    return host;
}

static void read_injection(struct star *star, struct event event, const char *name, const char *line)
{
    const char *hex = strrchr(line, ' ') + 1;
    struct frame *frame = take_frame(star);
    unsigned byte;
    frame->stored = 0;
    for (; frame->stored < FRAME && sscanf(hex, "%2x", &byte) == 1; hex += 2)
        frame->bytes[frame->stored++] = (uint8_t)byte;
    frame->wire = frame->stored;
    event.what = INJECT;
    event.host = host_named(star, name, false);
    event.frame = frame;
    push(star, event);
}

static void read_denial(struct star *star, struct event event, const char *name, const char *line)
{
    unsigned queue_pair;
    char digits[65];
    event.what = DENY;
    event.host = host_named(star, name, false);
    event.frame = take_frame(star);
    if (sscanf(line, "deny %*s %*s %u %64s", &queue_pair, digits) != 2)
        quit(EXIT_BAD_INPUT, "a denial is of a queue pair and its entropies: %s", line);
    snprintf((char *)event.frame->bytes, FRAME, "deny %u %s", queue_pair, digits);
    push(star, event);
}

static void read_word(struct star *star, struct event event, const char *name, const char *line)
{
    event.what = DENY;
    event.host = host_named(star, name, false);
    event.frame = take_frame(star);
    if (sscanf(line, "tell %*s %*s %255[^\n]", (char *)event.frame->bytes) != 1)
        quit(EXIT_BAD_INPUT, "nothing is told: %s", line);
    push(star, event);
}

static void read_line(struct star *star, struct host **current, char *line)
{
    char verb[16] = "", name[16] = "";
    sscanf(line, "%15s %15s", verb, name);
    struct event event = {.at = (ns_t)option(line, "at", 0)};
    if (!strcmp(verb, "fabric")) {
        read_fabric(star, line);
        return;
    }
    if (!strcmp(verb, "host")) {
        *current = host_named(star, name, true);
        return;
    }
    static const char *const VERBS[] = {[PAUSE] = "pause", [MARK] = "mark", [KILL] = "kill",
                                        [SAMPLE] = "sample"};
    for (int what = PAUSE; what <= SAMPLE; what++) {
        if (strcmp(verb, VERBS[what]))
            continue;
        event.what = (enum what)what;
        event.host = host_named(star, name, false);
        bool samples = what == SAMPLE;
        event.a = (uint64_t)option(line, samples ? "qp" : "priority", samples ? 0 : 3);
        event.b = (uint64_t)option(line, samples ? "every" : "quanta", samples ? 1000 : 0);
        push(star, event);
        return;
    }
    if (!strcmp(verb, "inject"))
        read_injection(star, event, name, line);
    else if (!strcmp(verb, "deny"))
        read_denial(star, event, name, line);
    else if (!strcmp(verb, "tell"))
        read_word(star, event, name, line);
    else if (!strcmp(verb, "watch"))
        host_named(star, name, false)->watched = true;
    else if (!strcmp(verb, "capture"))
        host_named(star, name, false)->captured = true;
    else if (!strcmp(verb, "lose"))
        host_named(star, name, false)->loses[(uint32_t)option(line, "nth", 0) % NTH] = true;
    else if (!*current || !script_line(&(*current)->script, line))
        quit(EXIT_BAD_INPUT, "%s", *current ? (*current)->script.problem : "a host comes first");
}

int main(void)
{
    static struct star star;
    struct host *current = NULL;
    char *line = NULL;
    size_t room = 0;

    read_fabric(&star, "");
    while (getline(&line, &room, stdin) > 0 && strcmp(line, "run\n"))
        read_line(&star, &current, line);
    free(line);
    run(&star);
    for (uint32_t i = 0; i < star.host_count; i++) {
        plan_free(star.hosts[i].script.plan);
        for (struct frame *frame = star.hosts[i].queue, *next; frame; frame = next) {
            next = frame->next;
            free(frame);
        }
    }
    for (uint32_t i = 0; i < star.event_count; i++)
        free(star.events[i].frame);
    for (struct frame *frame = star.spare, *next; frame; frame = next) {
        next = frame->next;
        free(frame);
    }
    free(star.events);
    return 0;
}
