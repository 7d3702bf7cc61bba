/* A job's cells: as many as its tree has for it, two for each slot. Those whose result is due are in a
 * list by when their part was sent last, so that the first is always the next to be late. It is lost,
 * too, when the results of several that were sent after it are here: a tree is one way, and what
 * overtakes there does so by few. Everybody misses such a result, and everybody asks for it; a switch
 * that knows those parts drops them.
 */
#include "inc.h"

#include <stdlib.h>

#include "invariant.h"
#include "qp.h"

enum {
    NONE = UINT32_MAX,
    WITH_DATA = 1,
    CELLS_A_SLOT = 2,
    OVERTAKERS = 3,      /* that make one lost */
    MOST_DOUBLINGS = 6,  /* of how long a result may be due */
    AFTER_SILENCE = 4,   /* the part of that time which others have when one has come again */
};

struct cell {
    uint32_t chunk; /* whose part was sent last; 0: none */
    bool has_result;
    ns_t sent_at;
    uint32_t before, after; /* in the list */
};

struct inc_job {
    struct inc_job_config config;
    struct inc_job *next;
    struct inc_message *head, *tail; /* those posted that are not done */
    struct cell *cells;
    uint32_t mask, first, last; /* of cells; of the list */
    uint32_t again;             /* a chunk that is to be sent again, or 0 */
    uint32_t overtakers;        /* results that came, of parts sent after the list's first */
    uint32_t silent;            /* times in a row that nothing came */
};

static uint32_t upwards(uint64_t a, uint32_t b) { return (uint32_t)((a + b - 1) / b); }

uint32_t inc_chunks(enum inc_op op, uint32_t size, uint32_t members)
{
    if (op == INC_BARRIER)
        return 1;
    if (op == INC_REDUCE_SCATTER || op == INC_ALL_GATHER)
        return members * upwards(upwards(size, members), INC_VECTOR);
    return upwards(size, INC_VECTOR);
}

static const char *job_problem(const struct ep *ep, const struct inc_job_config *config)
{
    if (config->member >= config->members || config->members > INC_MEMBERS_MOST)
        return "a member is one of so many, at most 65,520";
    if (config->slots < 1 || config->slots > INC_SLOTS_MOST || config->slots & (config->slots - 1))
        return "slots are a power of two, at most 1,024";
    if (config->priority > 7)
        return "priorities are 0 to 7";
    if (config->header_bytes != udp_at(ep) + WIRE_UDP)
        return "headers are Ethernet, IP of the endpoint's version, and UDP";
    if (be16_load(config->headers + udp_at(ep) + 2) != INC_PORT)
        return "headers lead to the UDP port of collectives";
    if (ep->config.mtu < INC_VECTOR)
        return "a chunk has 1,024 bytes: the path MTU has to be that at least";
    if (!config->rto)
        return "a result is due after some time";
    return NULL;
}

struct inc_job *ep_add_job(struct ep *ep, const struct inc_job_config *config, const char **problem)
{
    *problem = job_problem(ep, config);
    if (!*problem && ep_find_job(ep, config->number))
        *problem = "it is there already";
    if (*problem)
        return NULL;
    uint32_t cells = CELLS_A_SLOT * config->slots;
    struct inc_job *job = calloc(1, sizeof *job);
    struct cell *room = calloc(cells, sizeof *room);
    if (!job || !room) {
        free(job);
        free(room);
        *problem = "memory is short";
        return NULL;
    }
    *job = (struct inc_job){.config = *config, .next = ep->jobs, .cells = room, .mask = cells - 1,
                            .first = NONE, .last = NONE};
    ep->jobs = job;
    return job;
}

struct inc_job *ep_find_job(const struct ep *ep, uint32_t number)
{
    struct inc_job *job = ep->jobs;
    while (job && job->config.number != number)
        job = job->next;
    return job;
}

void inc_free(struct ep *ep)
{
    for (struct inc_job *next, *job = ep->jobs; job; job = next) {
        next = job->next;
        free(job->cells);
        free(job);
    }
}

/* --- what is in chunks ------------------------------------------------------------------------------- */

static bool reduces(const struct inc_message *message)
{
    return message->op == INC_ALL_REDUCE || message->op == INC_REDUCE_SCATTER;
}

static uint32_t chunks_of(const struct inc_message *message)
{
    return inc_chunks(message->op, message->size, message->job->config.members);
}

/* Who alone has data to send, if it is not summed up. */
static uint32_t source_of(const struct inc_message *message, uint32_t chunk)
{
    if (message->op == INC_BROADCAST)
        return message->root;
    return (chunk - message->first) % message->job->config.members;
}

/* To whom the result's data goes. */
static uint16_t owner_of(const struct inc_message *message, uint32_t chunk)
{
    if (message->op == INC_BARRIER)
        return INC_NOBODY;
    if (message->op == INC_REDUCE_SCATTER)
        return (uint16_t)((chunk - message->first) % message->job->config.members);
    return INC_EVERYBODY;
}

static bool gives_data(const struct inc_message *message, uint32_t chunk)
{
    return message->op != INC_BARRIER &&
           (reduces(message) || source_of(message, chunk) == message->job->config.member);
}

static bool gets_data(const struct inc_message *message, uint32_t chunk)
{
    uint16_t owner = owner_of(message, chunk);
    return owner == INC_EVERYBODY || owner == message->job->config.member;
}

/* A number of the first member's; member m has m + 1 times that. */
static uint32_t number_at(const struct inc_job *job, uint32_t chunk, uint32_t lane)
{
    uint32_t mixed = (chunk << 8 | lane) * 0x9E3779B1u + job->config.number * 0x85EBCA77u;
    return mixed ^ mixed >> 15;
}

static void fill(const struct ep *ep, const struct inc_message *message, uint32_t chunk,
                 uint32_t *numbers)
{
    const struct inc_job *job = message->job;
    if (ep->port.give) {
        ep->port.give(ep->port.ctx, message, chunk - message->first, numbers);
        return;
    }
    for (uint32_t lane = 0; lane < INC_LANES; lane++)
        numbers[lane] = number_at(job, chunk, lane) * (job->config.member + 1u);
}

static bool is_right(const struct ep *ep, const struct inc_message *message, uint32_t chunk,
                     const uint32_t *numbers)
{
    const struct inc_job *job = message->job;
    uint32_t n = job->config.members;
    uint32_t times = reduces(message) ? (uint32_t)((uint64_t)n * (n + 1) / 2)
                                      : source_of(message, chunk) + 1;
    if (ep->port.get)
        return ep->port.get(ep->port.ctx, message, chunk - message->first, numbers);
    for (uint32_t lane = 0; lane < INC_LANES; lane++)
        if (numbers[lane] != number_at(job, chunk, lane) * times)
            return false;
    return true;
}

/* --- the list of what is due ------------------------------------------------------------------------- */

static struct cell *cell_of(const struct inc_job *job, uint32_t chunk)
{
    return &job->cells[(chunk - 1) & job->mask];
}

static void leave(struct inc_job *job, struct cell *cell)
{
    if (cell->before == NONE)
        job->overtakers = 0;
    *(cell->before == NONE ? &job->first : &job->cells[cell->before].after) = cell->after;
    *(cell->after == NONE ? &job->last : &job->cells[cell->after].before) = cell->before;
}

static void join(struct inc_job *job, struct cell *cell, ns_t now)
{
    uint32_t at = (uint32_t)(cell - job->cells);
    cell->sent_at = now;
    cell->before = job->last;
    cell->after = NONE;
    *(job->last == NONE ? &job->first : &job->cells[job->last].after) = at;
    job->last = at;
}

static ns_t due(const struct inc_job *job)
{
    uint32_t times = job->silent < MOST_DOUBLINGS ? job->silent : MOST_DOUBLINGS;
    if (job->first == NONE || job->again)
        return NS_NEVER;
    return job->cells[job->first].sent_at + (job->config.rto << times);
}

/* The first of the list goes again. */
static void lose_first(struct inc_job *job)
{
    struct cell *cell = &job->cells[job->first];
    leave(job, cell);
    job->again = cell->chunk;
}

/* Something came. After a silence nobody is late yet who was meanwhile. */
static void note_progress(struct inc_job *job, ns_t now)
{
    ns_t left = job->config.rto / AFTER_SILENCE, then = now + left - job->config.rto;
    for (uint32_t at = job->first; job->silent && at != NONE; at = job->cells[at].after)
        if (job->cells[at].sent_at + job->config.rto < now + left)
            job->cells[at].sent_at = then;
    job->silent = 0;
    if (job->overtakers >= OVERTAKERS && !job->again)
        lose_first(job);
}

/* --- out -------------------------------------------------------------------------------------------------- */

/* The collective whose next part may be sent; NULL if there is none. */
static struct inc_message *next_of(const struct inc_job *job)
{
    for (struct inc_message *message = job->head; message; message = message->next) {
        if (message->sent == chunks_of(message))
            continue;
        uint32_t chunk = message->first + message->sent, slots = job->config.slots;
        const struct cell *before = cell_of(job, chunk - slots);
        if (chunk <= slots || (before->chunk == chunk - slots && before->has_result))
            return message;
    }
    return NULL;
}

static struct inc_message *holder_of(const struct inc_job *job, uint32_t chunk)
{
    struct inc_message *message = job->head;
    while (message && (chunk < message->first || chunk - message->first >= chunks_of(message)))
        message = message->next;
    return message;
}

void inc_post(struct ep *ep, struct inc_message *message, ns_t now)
{
    struct inc_job *job = message->job;
    (void)ep, (void)now;
    message->next = NULL;
    message->sent = 0;
    message->missing = chunks_of(message);
    *(job->head ? &job->tail->next : &job->head) = message;
    job->tail = message;
}

static uint32_t frame_part(struct ep *ep, const struct inc_message *message, uint32_t chunk)
{
    const struct inc_job_config *config = &message->job->config;
    uint8_t *ip = ep->frame + WIRE_IP_AT, *udp = ep->frame + udp_at(ep), *at = udp + WIRE_UDP;
    bool has_data = gives_data(message, chunk);
    uint32_t length = WIRE_UDP + INC_HEADER + (has_data ? INC_VECTOR : 0u), numbers[INC_LANES];
    ep->in_front = 0;
    memcpy(ep->frame, config->headers, config->header_bytes);
    memset(at, 0, INC_HEADER);
    at[0] = INC_PART;
    at[1] = has_data ? WITH_DATA : 0;
    be16_store(at + 2, config->number);
    be32_store(at + 4, chunk);
    be16_store(at + 8, owner_of(message, chunk));
    be16_store(at + 10, config->member);
    if (has_data) {
        fill(ep, message, chunk, numbers);
        for (uint32_t lane = 0; lane < INC_LANES; lane++)
            be32_store(at + INC_HEADER + 4 * lane, numbers[lane]);
    }
    be16_store(udp + 4, (uint16_t)length);
    if (ip_is_v6(ip))
        be16_store(ip + 4, (uint16_t)length);
    else
        close_ipv4(ip, WIRE_IPV4 + length);
    return udp_at(ep) + length;
}

static bool can_send(const struct ep *ep, const struct inc_job *job, ns_t now)
{
    return !schedule_is_held(ep, 0, job->config.priority, now) && (job->again || next_of(job));
}

bool inc_can_send(struct ep *ep, ns_t now)
{
    if (!ep->jobs || ep->lanes[0].free > ps_of_ns(now))
        return false;
    for (const struct inc_job *job = ep->jobs; job; job = job->next)
        if (can_send(ep, job, now))
            return true;
    return false;
}

/* The jobs take turns: who has sent is the last of the list. */
static void to_the_end(struct ep *ep, struct inc_job *job)
{
    struct inc_job **place = &ep->jobs;
    while (*place != job)
        place = &(*place)->next;
    *place = job->next;
    while (*place)
        place = &(*place)->next;
    *place = job;
    job->next = NULL;
}

bool inc_send(struct ep *ep, ns_t now)
{
    struct inc_job *job = ep->jobs;
    while (!can_send(ep, job, now))
        job = job->next;
    struct inc_message *message = job->again ? holder_of(job, job->again) : next_of(job);
    uint32_t chunk = job->again ? job->again : message->first + message->sent;
    uint32_t wire = frame_part(ep, message, chunk);
    if (schedule_send(ep, 0, wire, wire, job->config.priority, 0, now) == PS_NEVER)
        return false;
    struct cell *cell = cell_of(job, chunk);
    ep->counters.tx_parts++;
    if (job->again) {
        ep->counters.tx_parts_again++;
        job->again = 0;
    } else {
        message->sent++;
        cell->chunk = chunk;
        cell->has_result = false;
    }
    join(job, cell, now);
    to_the_end(ep, job);
    return true;
}

void inc_time_out(struct ep *ep, ns_t now)
{
    for (struct inc_job *job = ep->jobs; job; job = job->next) {
        if (due(job) > now)
            continue;
        lose_first(job);
        job->silent++;
    }
}

ns_t inc_due(const struct ep *ep, ns_t now)
{
    ns_t first = NS_NEVER;
    for (const struct inc_job *job = ep->jobs; job; job = job->next) {
        ns_t held = ep_held_until(ep, 0, job->config.priority, now);
        first = ns_least(first, due(job));
        if (job->again || next_of(job))
            first = ns_least(first, held ? held : ns_after_ps(ep->lanes[0].free));
    }
    return first;
}

/* --- in --------------------------------------------------------------------------------------------------- */

bool inc_is(const struct ep *ep, const uint8_t *frame, uint32_t stored)
{
    return ep->jobs && stored >= udp_at(ep) + WIRE_UDP + INC_HEADER &&
           be16_load(frame + udp_at(ep) + 2) == INC_PORT;
}

static void over(struct ep *ep, struct inc_message *message, enum ep_event_kind kind, ns_t now)
{
    struct inc_job *job = message->job;
    struct inc_message **place = &job->head, *before = NULL;
    for (; *place != message; place = &(*place)->next)
        before = *place;
    *place = message->next;
    if (job->tail == message)
        job->tail = before;
    message->done = true;
    struct ep_event event = {.kind = kind, .message = (struct ep_message *)message, .at = now};
    event.error = kind == EP_FAILED ? EP_LOCAL_DATA : EP_OK;
    ep->port.event(ep->port.ctx, &event);
}

static void take_result(struct ep *ep, struct inc_job *job, const uint8_t *header, uint32_t bytes,
                        ns_t now)
{
    uint32_t chunk = be32_load(header + 4), numbers[INC_LANES];
    struct cell *cell = cell_of(job, chunk);
    struct inc_message *message = holder_of(job, chunk);
    if (!chunk || cell->chunk != chunk || cell->has_result || !message) {
        ep->counters.rx_results_twice++;
        return;
    }
    bool has_data = header[1] & WITH_DATA;
    if (bytes < INC_HEADER + (has_data ? INC_VECTOR : 0u) ||
        (gets_data(message, chunk) && !has_data)) {
        ep->counters.rx_malformed++;
        return;
    }
    ep->counters.rx_results++;
    if (job->again == chunk)
        job->again = 0;
    else {
        job->overtakers += cell->before != NONE;
        leave(job, cell);
    }
    cell->has_result = true;
    note_progress(job, now);
    for (uint32_t lane = 0; has_data && lane < INC_LANES; lane++)
        numbers[lane] = be32_load(header + INC_HEADER + 4 * lane);
    if (gets_data(message, chunk) && !is_right(ep, message, chunk, numbers)) {
        ep->counters.rx_wrong_results++;
        over(ep, message, EP_FAILED, now);
    } else if (!--message->missing) {
        over(ep, message, EP_SENT, now);
    }
}

void inc_take(struct ep *ep, const uint8_t *frame, uint32_t stored, ns_t now)
{
    const uint8_t *header = frame + udp_at(ep) + WIRE_UDP;
    struct inc_job *job = ep_find_job(ep, be16_load(header + 2));
    if (!job)
        ep->counters.rx_no_queue_pair++;
    else if (header[0] == INC_RESULT)
        take_result(ep, job, header, stored - udp_at(ep) - WIRE_UDP, now);
    else if (header[0] == INC_PART)
        ep->counters.rx_parts_refused++;
    else
        ep->counters.rx_malformed++;
}
