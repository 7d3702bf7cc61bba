/* A job's cells: as many as its tree has for it, two for each slot. Those whose result is due are in a
 * list by when their part was sent last, so that the first is always the next to be late. It is lost,
 * too, when the results of several that were sent after it are here: a tree is one way, and what
 * overtakes there does so by few. Everybody misses such a result, and everybody asks for it; a switch
 * that knows those parts drops them.
 */
#include "inc.h"

#include <stdlib.h>

#include "inc_numbers.h"
#include "invariant.h"
#include "qp.h"

enum {
    NONE = UINT32_MAX,
    WITH_DATA = 1,
    CELLS_A_SLOT = 2,
    OVERTAKERS = 3,      /* that make one lost */
    ALONE_TRIES = 16,    /* more than with a tree: there is nothing else to turn to */
    MAX_DOUBLINGS = 6,  /* of how long a result may be due */
    AFTER_SILENCE = 4,   /* the part of that time which others have when one has come again */
};

struct cell {
    uint32_t chunk; /* whose part was sent last; 0: none */
    bool has_result;
    uint8_t scale;    /* the exponent that its own floats are scaled by, */
    uint8_t exponent; /* and the one that its result tells */
    ns_t sent_at; /* NS_NEVER: not yet since its tree was given up */
    uint32_t before, after; /* in the list */
};

/* At the first member: a sum of parts that came without a tree. */
struct sum {
    uint32_t chunk, heard; /* from how many */
    bool has_data, asked;
    uint8_t exponent;
    ns_t asked_at;
    uint32_t numbers[INC_LANES];
};

/* What the first member has to say. */
struct word {
    uint32_t chunk;
    uint16_t member;
    uint8_t kind;
};

struct inc_job {
    struct inc_job_config config;
    bool is_broken; /* its tree is given up, */
    bool is_over;   /* and so is all */
    uint8_t (*peers)[INC_HEADERS_MAX]; /* by member; NULL: nobody was told of */
    struct sum *sums;                   /* by cell; NULL: none was needed yet */
    uint8_t *heard;                     /* by cell and member, a bit each */
    struct word *words;                 /* a ring */
    uint32_t first_word, n_words;
    struct inc_job *next;
    struct inc_message *head, *tail; /* those posted whose parts may be asked for */
    struct cell *cells;
    uint32_t mask, first, last; /* of cells; of the list */
    uint32_t again;             /* a chunk that is to be sent again, or 0 */
    uint32_t overtakers;        /* results that came, of parts sent after the list's first */
    uint32_t silent;            /* times in a row that nothing came, */
    ns_t quiet_until;           /* and until when nothing is sent again for that */
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
    if (config->member >= config->members || config->members > INC_MEMBERS_MAX)
        return "a member is one of so many, at most 65,520";
    if (config->slots < 1 || config->slots > INC_SLOTS_MAX || config->slots & (config->slots - 1))
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

static const struct inc_ops OPS;

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
    ep->inc = &OPS;
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
        free(job->peers);
        free(job->sums);
        free(job->heard);
        free(job->words);
        free(job);
    }
}

const char *ep_add_peer(struct ep *ep, const struct inc_peer_config *config)
{
    struct inc_job *job = ep_find_job(ep, config->job);
    if (!job)
        return "there is no such job";
    if (config->member >= job->config.members || config->header_bytes != job->config.header_bytes)
        return "a peer is a member, and its headers are as long as the job's";
    if (!job->peers)
        job->peers = calloc(job->config.members, sizeof *job->peers);
    if (!job->peers)
        return "memory is short";
    memcpy(job->peers[config->member], config->headers, config->header_bytes);
    return NULL;
}

/* --- what is in chunks ------------------------------------------------------------------------------- */

static bool reduces(const struct inc_message *message)
{
    return message->op == INC_ALL_REDUCE || message->op == INC_REDUCE_SCATTER;
}

static uint32_t with_data(const struct inc_message *message)
{
    return inc_chunks(message->op, message->size, message->job->config.members);
}

/* How many chunks tell exponents before the first has data. */
static uint32_t ahead_of(const struct inc_message *message)
{
    const struct inc_job_config *config = &message->job->config;
    if (!config->floats || !reduces(message))
        return 0;
    uint32_t data = with_data(message);
    return data < config->slots ? data : config->slots;
}

static uint32_t chunks_of(const struct inc_message *message)
{
    return with_data(message) + ahead_of(message);
}

/* Whether it is before those with data, and tells an exponent alone. */
static bool is_ahead(const struct inc_message *message, uint32_t chunk)
{
    return chunk - message->first < ahead_of(message);
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
    if (message->op == INC_BARRIER || is_ahead(message, chunk))
        return INC_NOBODY;
    if (message->op == INC_REDUCE_SCATTER)
        return (uint16_t)((chunk - message->first - ahead_of(message)) %
                          message->job->config.members);
    return INC_EVERYBODY;
}

static bool gives_data(const struct inc_message *message, uint32_t chunk)
{
    return message->op != INC_BARRIER && !is_ahead(message, chunk) &&
           (reduces(message) || source_of(message, chunk) == message->job->config.member);
}

static bool gets_data(const struct inc_message *message, uint32_t chunk)
{
    uint16_t owner = owner_of(message, chunk);
    return owner == INC_EVERYBODY || owner == message->job->config.member;
}

/* The exponent of a later chunk's floats, which a part tells; 0 if there are none. */
static uint8_t told_with(const struct inc_message *message, uint32_t chunk)
{
    uint32_t ahead = ahead_of(message), later = chunk + ahead;
    if (!ahead || later - message->first >= chunks_of(message))
        return 0;
    return inc_exponent(&message->job->config, later);
}

static void fill(const struct inc_message *message, uint32_t chunk, uint8_t scale, uint32_t *numbers)
{
    if (ahead_of(message))
        inc_floats(&message->job->config, chunk, scale, numbers);
    else
        inc_integers(&message->job->config, chunk, numbers);
}

static bool is_right(const struct inc_message *message, uint32_t chunk, uint8_t scale,
                     const uint32_t *numbers)
{
    const struct inc_job_config *config = &message->job->config;
    uint64_t n = config->members;
    if (ahead_of(message))
        return inc_are_floats(config, chunk, scale, numbers);
    return inc_are_integers(config, chunk,
                            reduces(message) ? n * (n + 1) / 2 : source_of(message, chunk) + 1u,
                            numbers);
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

static uint32_t doublings(uint32_t times) { return times < MAX_DOUBLINGS ? times : MAX_DOUBLINGS; }

static ns_t due(const struct inc_job *job)
{
    if (job->first == NONE || job->again || job->is_over)
        return NS_NEVER;
    if (job->cells[job->first].sent_at == NS_NEVER)
        return 0;
    ns_t at = job->cells[job->first].sent_at + job->config.rto;
    return at > job->quiet_until ? at : job->quiet_until;
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
        if (job->cells[at].sent_at < now && job->cells[at].sent_at + job->config.rto < now + left)
            job->cells[at].sent_at = then;
    job->silent = 0;
    job->quiet_until = 0;
    if (job->overtakers >= OVERTAKERS && !job->again)
        lose_first(job);
}

/* The tree is no use: all that is due goes at once, another way. */
static void give_up_tree(struct inc_job *job)
{
    if (job->is_broken)
        return;
    job->is_broken = true;
    job->silent = 0;
    job->quiet_until = 0;
    for (uint32_t at = job->first; at != NONE; at = job->cells[at].after)
        job->cells[at].sent_at = NS_NEVER;
}

/* --- out -------------------------------------------------------------------------------------------------- */

static bool has_result(const struct inc_job *job, uint32_t chunk)
{
    const struct cell *cell = cell_of(job, chunk);
    return cell->chunk == chunk && cell->has_result;
}

/* The exponent by which a chunk's floats are scaled: the first time what an earlier result told. */
static uint8_t scale_of(const struct inc_message *message, uint32_t chunk)
{
    const struct cell *cell = cell_of(message->job, chunk);
    uint32_t ahead = ahead_of(message);
    if (!ahead || is_ahead(message, chunk))
        return 0;
    return cell->chunk == chunk ? cell->scale : cell_of(message->job, chunk - ahead)->exponent;
}

/* The collective whose next part may be sent; NULL if there is none. */
static struct inc_message *next_of(const struct inc_job *job)
{
    for (struct inc_message *message = job->head; message; message = message->next) {
        if (message->sent == chunks_of(message))
            continue;
        uint32_t chunk = message->first + message->sent, slots = job->config.slots;
        bool has_slot = chunk <= slots || has_result(job, chunk - slots);
        uint32_t ahead = ahead_of(message);
        bool has_scale = message->sent < ahead || !ahead || has_result(job, chunk - ahead);
        if (has_slot && has_scale)
            return message;
    }
    return NULL;
}

/* Let go of collectives whose parts nobody can ask for any more: all of their cells have newer chunks. */
static void let_go(struct inc_job *job, uint32_t newest)
{
    while (job->head != job->tail && job->head->done &&
           newest - job->head->first >= chunks_of(job->head) + job->mask)
        job->head = job->head->next;
}

static struct inc_message *holder_of(const struct inc_job *job, uint32_t chunk)
{
    struct inc_message *message = job->head;
    while (message && (chunk < message->first || chunk - message->first >= chunks_of(message)))
        message = message->next;
    return message;
}

static void over(struct ep *ep, struct inc_message *message, enum ep_error error, ns_t now)
{
    struct ep_event event = {.kind = error ? EP_FAILED : EP_SENT, .error = error, .at = now,
                             .message = (struct ep_message *)message};
    if (message->done)
        return;
    message->done = true;
    ep->port.event(ep->port.ctx, &event);
}

/* Neither a tree nor the first member is of any use. */
static void give_up(struct ep *ep, struct inc_job *job, ns_t now)
{
    job->is_over = true;
    for (struct inc_message *message = job->head; message; message = message->next)
        over(ep, message, EP_RETRY_EXCEEDED, now);
}

void inc_post(struct ep *ep, struct inc_message *message, ns_t now)
{
    struct inc_job *job = message->job;
    if (job->is_over) {
        over(ep, message, EP_RETRY_EXCEEDED, now);
        return;
    }
    message->next = NULL;
    message->sent = 0;
    message->missing = chunks_of(message);
    *(job->head ? &job->tail->next : &job->head) = message;
    job->tail = message;
}

static uint32_t frame(struct ep *ep, const struct inc_job *job, const uint8_t *headers, uint8_t kind,
                      uint32_t chunk, uint16_t owner, uint8_t exponent, const uint32_t *numbers)
{
    const struct inc_job_config *config = &job->config;
    uint8_t *ip = ep->frame + WIRE_IP_AT, *udp = ep->frame + udp_at(ep), *at = udp + WIRE_UDP;
    uint32_t length = WIRE_UDP + INC_HEADER + (numbers ? INC_VECTOR : 0u);
    ep->in_front = 0;
    memcpy(ep->frame, headers, config->header_bytes);
    memset(at, 0, INC_HEADER);
    at[0] = kind;
    at[1] = numbers ? WITH_DATA : 0;
    be16_store(at + 2, config->number);
    be32_store(at + 4, chunk);
    be16_store(at + 8, owner);
    be16_store(at + 10, config->member);
    at[12] = exponent;
    for (uint32_t lane = 0; numbers && lane < INC_LANES; lane++)
        be32_store(at + INC_HEADER + 4 * lane, numbers[lane]);
    be16_store(udp + 4, (uint16_t)length);
    if (ip_is_v6(ip))
        be16_store(ip + 4, (uint16_t)length);
    else
        close_ipv4(ip, WIRE_IPV4 + length);
    return udp_at(ep) + length;
}

static bool has_turn(const struct inc_job *job)
{
    return !job->is_over && (job->n_words || job->again || next_of(job));
}

static bool can_send(const struct ep *ep, const struct inc_job *job, ns_t now)
{
    return !schedule_is_held(ep, 0, job->config.priority, now) && has_turn(job);
}

static bool may_send(struct ep *ep, ns_t now)
{
    if (ep->lanes[0].free > ps_of_ns(now))
        return false;
    for (const struct inc_job *job = ep->jobs; job; job = job->next)
        if (can_send(ep, job, now))
            return true;
    return false;
}

static bool is_first(const struct inc_job *job) { return job->config.member == 0; }

static void add_up(struct inc_job *job, uint16_t member, uint32_t chunk, uint8_t exponent,
                   const uint32_t *numbers, ns_t now);

static void take_own(struct ep *ep, struct inc_job *job, uint32_t chunk, ns_t now);

static uint32_t words_room(const struct inc_job *job)
{
    return CELLS_A_SLOT * job->config.slots + 4u * job->config.members;
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

/* To the tree, or without one to the first member, which may be this one. */
static bool send_part(struct ep *ep, struct inc_message *message, uint32_t chunk, ns_t now)
{
    struct inc_job *job = message->job;
    uint32_t numbers[INC_LANES];
    const uint32_t *data = gives_data(message, chunk) ? numbers : NULL;
    uint8_t exponent = told_with(message, chunk);
    if (data)
        fill(message, chunk, scale_of(message, chunk), numbers);
    ep->counters.tx_parts++;
    if (job->is_broken && is_first(job)) {
        add_up(job, 0, chunk, exponent, data, now);
        return true;
    }
    bool has_tree = !job->is_broken || !job->peers;
    uint32_t wire = frame(ep, job, has_tree ? job->config.headers : job->peers[0],
                          has_tree ? INC_PART : INC_HELP, chunk, owner_of(message, chunk), exponent,
                          data);
    return schedule_send(ep, 0, wire, wire, job->config.priority, 0, now) != PS_NEVER;
}

static bool send_word(struct ep *ep, struct inc_job *job, ns_t now)
{
    struct word word = job->words[job->first_word];
    struct inc_message *message = holder_of(job, word.chunk);
    if (message && word.kind == INC_HELP && !send_part(ep, message, word.chunk, now))
        return false;
    if (message && word.kind != INC_HELP) {
        const struct sum *sum = &job->sums[(word.chunk - 1) & job->mask];
        uint16_t owner = owner_of(message, word.chunk);
        bool is_sum = word.kind == INC_GIVEN && sum->chunk == word.chunk;
        bool has_data = is_sum && (owner == INC_EVERYBODY || owner == word.member);
        uint32_t wire = frame(ep, job, job->peers[word.member], word.kind, word.chunk, owner,
                              is_sum ? sum->exponent : 0, has_data ? sum->numbers : NULL);
        if (schedule_send(ep, 0, wire, wire, job->config.priority, 0, now) == PS_NEVER)
            return false;
    }
    job->first_word = (job->first_word + 1) % words_room(job);
    job->n_words--;
    return true;
}

static bool send_one(struct ep *ep, ns_t now)
{
    struct inc_job *job = ep->jobs;
    while (!can_send(ep, job, now))
        job = job->next;
    if (job->n_words) {
        if (!send_word(ep, job, now))
            return false;
        to_the_end(ep, job);
        return true;
    }
    struct inc_message *message = job->again ? holder_of(job, job->again) : next_of(job);
    uint32_t chunk = job->again ? job->again : message->first + message->sent;
    if (!send_part(ep, message, chunk, now))
        return false;
    struct cell *cell = cell_of(job, chunk);
    if (job->again) {
        ep->counters.tx_parts_again++;
        job->again = 0;
    } else {
        message->sent++;
        cell->scale = scale_of(message, chunk);
        cell->chunk = chunk;
        cell->has_result = false;
        let_go(job, chunk);
    }
    join(job, cell, now);
    to_the_end(ep, job);
    take_own(ep, job, chunk, now);
    return true;
}

static void time_out(struct ep *ep, ns_t now)
{
    for (struct inc_job *job = ep->jobs; job; job = job->next) {
        if (due(job) > now)
            continue;
        bool is_late = job->cells[job->first].sent_at != NS_NEVER;
        lose_first(job);
        if (!is_late)
            continue;
        job->quiet_until = now + (job->config.rto << doublings(++job->silent));
        if (job->silent <= job->config.tries)
            continue;
        if (job->is_broken && job->silent > job->config.tries + ALONE_TRIES)
            give_up(ep, job, now);
        give_up_tree(job);
    }
}

static ns_t next_due(const struct ep *ep, ns_t now)
{
    ns_t first = NS_NEVER;
    for (const struct inc_job *job = ep->jobs; job; job = job->next) {
        ns_t held = ep_held_until(ep, 0, job->config.priority, now);
        first = ns_least(first, due(job));
        if (has_turn(job))
            first = ns_least(first, held ? held : ns_after_ps(ep->lanes[0].free));
    }
    return first;
}

static const struct inc_ops OPS = {time_out, may_send, send_one, next_due};

/* --- in --------------------------------------------------------------------------------------------------- */

bool inc_is(const struct ep *ep, const uint8_t *frame, uint32_t stored)
{
    return ep->jobs && stored >= udp_at(ep) + WIRE_UDP + INC_HEADER &&
           be16_load(frame + udp_at(ep) + 2) == INC_PORT;
}

/* `numbers` are none if it has no data. */
static void take_result(struct ep *ep, struct inc_job *job, uint32_t chunk, uint8_t exponent,
                        const uint32_t *numbers, ns_t now)
{
    struct cell *cell = cell_of(job, chunk);
    struct inc_message *message = holder_of(job, chunk);
    if (!chunk || cell->chunk != chunk || cell->has_result || !message) {
        ep->counters.rx_results_twice++;
        return;
    }
    if (gets_data(message, chunk) && !numbers) {
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
    cell->exponent = exponent;
    note_progress(job, now);
    if (gets_data(message, chunk) && !is_right(message, chunk, cell->scale, numbers)) {
        ep->counters.rx_wrong_results++;
        over(ep, message, EP_LOCAL_DATA, now);
    } else if (!--message->missing) {
        over(ep, message, EP_OK, now);
    }
}

/* --- without a tree: the first member adds up -------------------------------------------------------- */

static void say(struct inc_job *job, uint8_t kind, uint16_t member, uint32_t chunk)
{
    uint32_t room = words_room(job);
    if (!job->words)
        job->words = calloc(room, sizeof *job->words);
    if (job->words && job->n_words < room) /* what is not said will be asked for again */
        job->words[(job->first_word + job->n_words++) % room] = (struct word){chunk, member, kind};
}

static bool can_add_up(struct inc_job *job)
{
    uint32_t cells = job->mask + 1, bytes = (job->config.members + 7u) / 8;
    if (!job->sums) {
        job->sums = calloc(cells, sizeof *job->sums);
        job->heard = calloc(cells, bytes);
    }
    return job->sums && job->heard && job->peers;
}

/* Ask who has not given a part yet, but not too often. */
static void ask_others(struct inc_job *job, struct sum *sum, const uint8_t *heard, ns_t now)
{
    if (sum->asked && now - sum->asked_at < job->config.rto / AFTER_SILENCE)
        return;
    sum->asked = true;
    sum->asked_at = now;
    for (uint16_t member = 1; member < job->config.members; member++)
        if (!(heard[member / 8] >> member % 8 & 1))
            say(job, INC_ASK, member, sum->chunk);
}

static void add_up(struct inc_job *job, uint16_t member, uint32_t chunk, uint8_t exponent,
                   const uint32_t *numbers, ns_t now)
{
    if (!can_add_up(job))
        return;
    uint32_t bytes = (job->config.members + 7u) / 8, at = (chunk - 1) & job->mask;
    struct sum *sum = &job->sums[at];
    uint8_t *heard = job->heard + (size_t)at * bytes;
    if (chunk - sum->chunk > UINT32_MAX / 2)
        return; /* long over */
    if (sum->chunk != chunk) {
        *sum = (struct sum){.chunk = chunk};
        memset(heard, 0, bytes);
    }
    bool is_new = !(heard[member / 8] >> member % 8 & 1);
    if (!is_new && sum->heard == job->config.members) {
        if (member)
            say(job, INC_GIVEN, member, chunk);
        return;
    }
    for (uint32_t lane = 0; is_new && numbers && lane < INC_LANES; lane++)
        sum->numbers[lane] += numbers[lane];
    sum->has_data = sum->has_data || numbers;
    sum->exponent = exponent > sum->exponent ? exponent : sum->exponent;
    heard[member / 8] |= (uint8_t)(is_new << member % 8);
    sum->heard += is_new;
    if (sum->heard < job->config.members) {
        ask_others(job, sum, heard, now);
        return;
    }
    for (uint16_t other = 1; other < job->config.members; other++)
        say(job, INC_GIVEN, other, chunk);
}

/* A sum that the first member has itself made is its own result, once it is not sending. */
static void take_own(struct ep *ep, struct inc_job *job, uint32_t chunk, ns_t now)
{
    const struct sum *sum = job->sums ? &job->sums[(chunk - 1) & job->mask] : NULL;
    if (sum && sum->chunk == chunk && sum->heard == job->config.members &&
        !cell_of(job, chunk)->has_result)
        take_result(ep, job, chunk, sum->exponent, sum->has_data ? sum->numbers : NULL, now);
}

/* Somebody lacks a result that is here: give the part to it once more, for there is no tree any more,
 * whatever was seen of it here. */
static void give_again(struct ep *ep, struct inc_job *job, uint32_t chunk, ns_t now)
{
    struct inc_message *message = holder_of(job, chunk);
    const struct cell *cell = cell_of(job, chunk);
    give_up_tree(job);
    if (!message || cell->chunk != chunk || !cell->has_result)
        return;
    if (is_first(job))
        send_part(ep, message, chunk, now);
    else
        say(job, INC_HELP, 0, chunk);
}

void inc_take(struct ep *ep, const uint8_t *frame, uint32_t stored, ns_t now)
{
    const uint8_t *header = frame + udp_at(ep) + WIRE_UDP;
    struct inc_job *job = ep_find_job(ep, be16_load(header + 2));
    uint32_t chunk = be32_load(header + 4), numbers[INC_LANES];
    uint16_t member = be16_load(header + 10);
    uint8_t exponent = header[12];
    const uint32_t *data = header[1] & WITH_DATA ? numbers : NULL;
    if (!job) {
        ep->counters.rx_no_queue_pair++;
        return;
    }
    if (!chunk || member >= job->config.members ||
        stored < udp_at(ep) + WIRE_UDP + INC_HEADER + (data ? INC_VECTOR : 0u)) {
        ep->counters.rx_malformed++;
        return;
    }
    for (uint32_t lane = 0; data && lane < INC_LANES; lane++)
        numbers[lane] = be32_load(header + INC_HEADER + 4 * lane);
    switch (header[0]) {
    case INC_RESULT:
    case INC_GIVEN:
        take_result(ep, job, chunk, exponent, data, now);
        break;
    case INC_PART:
        ep->counters.rx_parts_refused++;
        give_up_tree(job);
        break;
    case INC_ASK:
        give_again(ep, job, chunk, now);
        break;
    case INC_HELP:
        if (is_first(job)) {
            ep->counters.rx_parts++;
            give_again(ep, job, chunk, now);
            add_up(job, member, chunk, exponent, data, now);
            take_own(ep, job, chunk, now);
            break;
        } /* fall through */
    default:
        ep->counters.rx_malformed++;
    }
}
