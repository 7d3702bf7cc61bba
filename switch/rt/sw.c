/* The life of a packet, in the order simple_switch gives it:
 *
 *   receive -> parse, ingress -> clone? digest? resubmit? multicast? drop? -> queue
 *   queue -> egress -> clone? drop? -> deparse -> recirculate? -> port
 *
 * Resubmitted and recirculated packets are served before the next arrival, as BMv2's input buffer
 * does, but no more than SW_TURNS_MAX in one call: a program that loops must not stop the clock.
 */
#include "sw.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "pcap.h"
#include "state.h"
#include "waiting.h"

const char *const sw_drop_names[DROP_REASONS] = {
    [DROP_NO_PROGRAM] = "no_program",     [DROP_INGRESS] = "ingress",
    [DROP_EGRESS] = "egress",             [DROP_QUEUE_FULL] = "queue_full",
    [DROP_PRIORITY] = "no_such_priority", [DROP_NO_PORT] = "no_such_port",
    [DROP_PORT_DOWN] = "port_down",       [DROP_SEND_FAILED] = "send_failed",
    [DROP_OVERSIZE] = "oversize",         [DROP_NO_GROUP] = "no_multicast_group",
    [DROP_EMPTY_GROUP] = "empty_multicast_group",
    [DROP_ASSERT] = "assert",             [DROP_LOOPING] = "looping",
    [DROP_ENDLESS] = "endless_loop",
    [DROP_NO_MEMORY] = "no_memory",       [DROP_CPU_BUSY] = "cpu_busy",
    [DROP_REPLACED] = "program_replaced",
};

#define EVENT_RING (1u << 20)
#define BURST_OF_WHOLE 16u
#define TIMER_FRAME_BYTES 60

struct sw *sw_new(const struct sw_config *config)
{
    struct sw *sw = calloc(1, sizeof *sw);
    if (!sw)
        return NULL;
    snprintf(sw->name, sizeof sw->name, "%s", config->name ? config->name : "switch");
    sw->pool = config->pool;
    sw->cpu_port = config->cpu_port;
    sw->state.drop_port = config->drop_port;
    sw->queues = config->queues < SW_QUEUES ? config->queues : SW_QUEUES;
    sw->whole = config->whole;
    sw->keep_on_wire = config->keep_on_wire;
    sw->seed = config->seed;
    sw->idle_check = SW_NEVER;
    if (!event_init(&sw->events, EVENT_RING, config->wants_events)) {
        sw_free(sw);
        return NULL;
    }
    return sw;
}

/* Ports */

struct sw_port *sw_port_new(struct sw *sw, uint32_t number)
{
    if (number >= SW_PORTS)
        return NULL;
    struct sw_port *port = NULL;
    if (posix_memalign((void **)&port, _Alignof(struct sw_port), sizeof *port))
        return NULL;
    *port = (struct sw_port){0};
    port->number = (uint16_t)number;
    tm_init(&port->tm);
    return sw->ports[number] = port;
}

static bool port_up(void *context, uint16_t number)
{
    const struct sw *sw = context;
    return number < SW_PORTS && sw->ports[number] && sw->ports[number]->is_up;
}

static void write_down_cell(struct sw *sw, uint32_t number)
{
    const struct sw_port *port = sw->ports[number];
    const struct sw_cells *down = &sw->shared[SW_PORT_DOWN];
    uint64_t is_down = port && !port->is_up; /* a number without a port is not down, it is nothing */
    if (number < down->count) /* little-endian: the low bytes of any width come first */
        memcpy(sw_cell(down, number), &is_down,
               down->cell_bytes < sizeof is_down ? down->cell_bytes : sizeof is_down);
}

static void write_down_cells(struct sw *sw)
{
    for (uint32_t number = 0; sw->shared[SW_PORT_DOWN].at && number < SW_PORTS; number++)
        write_down_cell(sw, number);
}

void sw_share(struct sw *sw, enum sw_role role, struct sw_cells cells)
{
    cells.from = sw->began;
    sw->shared[role] = cells;
    if (role == SW_PORT_DOWN)
        write_down_cells(sw);
}

bool sw_keep_times(struct sw *sw, struct sw_cells cells)
{
    if (!cells.at)
        sw->n_times = 0;
    else if (sw->n_times < SW_TIMES_MAX)
        sw->times[sw->n_times++] = cells;
    else
        return false;
    return true;
}

static void set_back(struct sw_cells *cells)
{
    for (uint32_t i = 0; cells->at && i < cells->count; i++) {
        uint64_t time = sw_cell_read(cells, i);
        time = time > SW_CLOCK_BACK ? time - SW_CLOCK_BACK : time != 0;
        sw_cell_write(cells, i, time);
    }
    cells->from += SW_CLOCK_BACK;
}

static void set_clock_back(struct sw *sw, ns_t now)
{
    while (now - sw->began >= SW_CLOCK_MAX) {
        sw->began += SW_CLOCK_BACK;
        for (uint32_t i = 0; i < sw->n_times; i++)
            set_back(&sw->times[i]);
        set_back(&sw->shared[SW_QUEUE_GATE]);
        set_back(&sw->shared[SW_TIMER]);
    }
}

/* A port came, went, or changed its state: whoever chooses among ports must know. */
static void watch_ports(struct sw *sw)
{
    write_down_cells(sw);
    for (uint32_t i = 0; sw->program && i < sw->program->n_profiles; i++)
        profile_port_changed(&sw->state.profiles[i], port_up, sw);
}

bool sw_attach(struct sw *sw, uint32_t number, const struct port_ops *ops, void *driver)
{
    struct sw_port *port = sw_port(sw, number);
    if (port && port->ops)
        errno = EBUSY;
    if (!port || port->ops)
        return false;
    port->ops = ops;
    port->driver = driver;
    port->is_up = true;
    port->tm.is_down = false;
    watch_ports(sw);
    return true;
}

static void wire_clear(struct sw *sw, struct sw_port *port, enum sw_drop why)
{
    while (port->wire) {
        struct pkt *p = port->wire;
        port->wire = p->next;
        sw->held--;
        sw_drop(sw, p, why);
    }
}

/* Of what was handed to a port. */
static void lose(struct sw_port *port, struct port_count lost)
{
    port->lost.packets += lost.packets;
    port->lost.bytes += lost.bytes;
}

void sw_detach(struct sw *sw, uint32_t number)
{
    struct sw_port *port = number < SW_PORTS ? sw->ports[number] : NULL;
    if (!port || !port->ops)
        return;
    wire_clear(sw, port, DROP_NO_PORT);
    sw_resume(sw, number);
    sw->held -= port->waiting.packets;
    sw->drops[DROP_NO_PORT] += port->waiting.packets;
    lose(port, port->waiting);
    port->waiting = (struct port_count){0, 0};
    port->ops->close(port->driver);
    port->ops = NULL;
    port->driver = NULL;
    port->is_up = false;
    sw->to_flush[number / 64] &= ~((uint64_t)1 << number % 64);
    watch_ports(sw);
}

/* What a link sends of itself is on the wire no more; what it is has numbers, and goes again. */
static void extra_clear(struct sw_port *port)
{
    while (port->extra) {
        struct cable_frame *frame = port->extra;
        port->extra = frame->next;
        free(frame);
    }
}

void sw_set_up(struct sw *sw, uint32_t number, bool is_up, ns_t now)
{
    struct sw_port *port = sw_port(sw, number);
    if (!port || port->is_up == is_up)
        return;
    port->is_up = is_up;
    port->tm.is_down = !is_up;
    port->tm.opened = now;
    extra_clear(port);
    struct event_head head = {.kind = EVENT_PORT, .time = now, .a = number, .b = is_up};
    event_put(&sw->events, &head, NULL);
    watch_ports(sw);
    if (is_up)
        timer_hasten(sw, number, now);
}

static void has_backlog(struct sw *sw, uint32_t number)
{
    sw->backlog[number / 64] |= (uint64_t)1 << number % 64;
    sw->backlog_words |= (uint8_t)(1u << number / 64);
}

static void no_backlog(struct sw *sw, uint32_t number)
{
    unsigned word = number / 64;
    sw->backlog[word] &= ~((uint64_t)1 << number % 64);
    if (!sw->backlog[word])
        sw->backlog_words &= (uint8_t)~(1u << word);
}

/* Most ports with a backlog are busy whenever anything happens: they are not looked at each time. */
static void set_aside(struct sw *sw, uint32_t number)
{
    sw->busy[number / 64] |= (uint64_t)1 << number % 64;
    sw->busy_words |= (uint8_t)(1u << number / 64);
    sw->soonest = sw->busy_until[number] < sw->soonest ? sw->busy_until[number] : sw->soonest;
    no_backlog(sw, number);
}

/* The first of those that were set aside is free. */
static void look_again(struct sw *sw)
{
    sw->backlog_words |= sw->busy_words;
    for (unsigned words = sw->busy_words; words; words &= words - 1) {
        unsigned word = (unsigned)__builtin_ctz(words);
        sw->backlog[word] |= sw->busy[word];
        sw->busy[word] = 0;
    }
    sw->busy_words = 0;
    sw->soonest = SW_NEVER;
}

void sw_hasten(struct sw *sw, uint32_t number) { sw->busy_until[number] = sw->soonest = 0; }

static void to_flush(struct sw *sw, uint32_t number)
{
    sw->to_flush[number / 64] |= (uint64_t)1 << number % 64;
    sw->wants_flush = true;
}

static void stall(struct sw *sw, struct sw_port *port)
{
    if (port->is_stalled)
        return;
    port->is_stalled = true;
    sw->n_stalled++;
}

void sw_resume(struct sw *sw, uint32_t number)
{
    struct sw_port *port = sw->ports[number];
    if (!port || !port->is_stalled)
        return;
    port->is_stalled = false;
    sw->n_stalled--;
    to_flush(sw, number); /* to learn what became of the rest */
}

/* Forget what a link does beside carrying frames. */
static void link_end(struct sw_port *port)
{
    extra_clear(port);
    llr_free(port->llr);
    port->llr = NULL;
}

/* Programs */

static void drop_all(struct sw *sw)
{
    for (uint32_t n = 0; n < SW_PORTS; n++) {
        struct sw_port *port = sw->ports[n];
        if (!port)
            continue;
        for (unsigned q = 0; q < SW_QUEUES; q++) {
            struct tm_queue *queue = &port->tm.queues[q];
            while (queue->head) {
                struct pkt *p = queue->head;
                queue->head = p->next;
                sw->held--;
                sw_drop(sw, p, DROP_REPLACED);
            }
            queue->packets = 0;
            queue->bytes = 0;
        }
        port->tm.backlog = 0;
        wire_clear(sw, port, DROP_REPLACED);
    }
    while (sw->again) {
        struct pkt *p = sw->again;
        sw->again = p->next;
        sw->held--;
        sw_drop(sw, p, DROP_REPLACED);
    }
    sw->n_again = 0;
    for (uint32_t i = 0; i < sw->n_gathered; i++) {
        sw->held--;
        sw_drop(sw, sw->gathered[i], DROP_REPLACED);
    }
    sw->n_gathered = 0;
    look_again(sw);
    memset(sw->backlog, 0, sizeof sw->backlog);
    sw->backlog_words = 0;
}

void sw_free(struct sw *sw)
{
    if (!sw)
        return;
    drop_all(sw);
    for (uint32_t n = 0; n < SW_PORTS; n++) {
        if (!sw->ports[n])
            continue;
        sw_detach(sw, n);
        for (unsigned way = 0; way < CABLE_WAYS; way++)
            cable_free(sw->ports[n]->cables[way]);
        link_end(sw->ports[n]);
        pcap_close(sw->ports[n]->pcap_in);
        pcap_close(sw->ports[n]->pcap_out);
        tm_unschedule(&sw->ports[n]->tm);
        free(sw->ports[n]);
        sw->ports[n] = NULL; /* groups still ask for watched ports while others go */
    }
    digest_free(sw);
    state_free(&sw->state);
    pre_free(&sw->groups);
    pre_free(&sw->sessions);
    event_free(&sw->events);
    free(sw);
}

void sw_move(struct sw *sw, struct pkt_pool *pool)
{
    drop_all(sw);
    sw->pool = pool;
}

bool sw_load(struct sw *sw, const struct sw_program *program, ns_t now)
{
    struct sw_state state;
    if (program->abi != SW_PROGRAM_ABI || !state_init(&state, program, now))
        return false;
    state.drop_port = sw->state.drop_port;
    state.random = sw->seed * 2 + 1;
    drop_all(sw);
    digest_free(sw);
    state_free(&sw->state);
    pre_free(&sw->groups);
    pre_free(&sw->sessions);
    for (uint32_t n = 0; n < SW_PORTS; n++)
        if (sw->ports[n]) {
            tm_unschedule(&sw->ports[n]->tm);
            link_end(sw->ports[n]);
        }
    memset(sw->shared, 0, sizeof sw->shared);
    sw->n_times = 0;
    sw->idle_check = SW_NEVER;
    sw->state = state;
    sw->program = program;
    sw->loads++;
    return digest_init(sw);
}

/* Whether what one program keeps is where the other looks for it. */
static bool is_laid_out_alike(const struct sw_program *one, const struct sw_program *other)
{
    return one->abi == other->abi && one->phv_size == other->phv_size &&
           one->headroom == other->headroom && one->packed_most == other->packed_most &&
           one->registers_size == other->registers_size && one->n_tables == other->n_tables &&
           one->n_actions == other->n_actions && one->n_profiles == other->n_profiles &&
           one->n_counters == other->n_counters && one->n_meters == other->n_meters &&
           one->n_registers == other->n_registers && one->n_digests == other->n_digests &&
           one->n_value_sets == other->n_value_sets;
}

bool sw_exchange(struct sw *sw, const struct sw_program *program)
{
    if (!sw->program || !is_laid_out_alike(sw->program, program))
        return false;
    sw->program = sw->state.program = program;
    return true;
}

/* Tracing and logging */

static void tell(sw_text_fn fn, void *context, const char *format, va_list args)
{
    char text[1024];
    vsnprintf(text, sizeof text, format, args);
    fn(context, text);
}

__attribute__((format(printf, 2, 3))) void sw_trace(struct sw_run *run, const char *format, ...)
{
    if (!run->sw->trace)
        return;
    va_list args;
    va_start(args, format);
    tell(run->sw->trace, run->sw->trace_context, format, args);
    va_end(args);
}

void sw_trace_drop(const struct sw *sw, enum sw_drop why)
{
    char text[64];
    snprintf(text, sizeof text, "  dropped: %s", sw_drop_names[why]);
    sw->trace(sw->trace_context, text);
}

void sw_log(struct sw_run *run, const char *format, ...)
{
    if (!run->sw->log)
        return;
    va_list args;
    va_start(args, format);
    tell(run->sw->log, run->sw->log_context, format, args);
    va_end(args);
}

void sw_assert_failed(struct sw_run *run, const char *what)
{
    run->sw->assert_failed = true;
    sw_log(run, "assertion failed: %s", what);
}

void sw_endless(struct sw_run *run)
{
    run->sw->endless = true;
    run->pkt->exited = true;
    sw_log(run, "a loop does not end: the packet is dropped");
}

/* Whether the stage that just ended spoilt the packet: then it is gone, and its reason counted. */
static bool spoilt(struct sw *sw, struct pkt *p)
{
    if (SW_LIKELY(!sw->assert_failed && !sw->endless))
        return false;
    sw_drop(sw, p, sw->endless ? DROP_ENDLESS : DROP_ASSERT);
    sw->assert_failed = sw->endless = false;
    return true;
}

#define TRACE(sw, run, ...)                                                                        \
    do {                                                                                           \
        if (SW_UNLIKELY((sw)->trace != NULL))                                                      \
            sw_trace(run, __VA_ARGS__);                                                            \
    } while (0)

/* The end of ingress */

/* A queue without a rate is as long as the burst that came, and gone when that is served. */
static bool will_wait(const struct sw *sw, const struct tm_port *port, const struct tm_queue *queue)
{
    return port->rate || queue->packets >= BURST_OF_WHOLE * sw->whole;
}

static void enqueue(struct sw *sw, struct pkt *p, uint32_t number, unsigned priority, ns_t now)
{
    struct sw_port *port = sw_port(sw, number);
    if (SW_UNLIKELY(!port)) {
        sw_drop(sw, p, DROP_NO_PORT);
        return;
    }
    if (SW_UNLIKELY(priority >= sw->queues)) {
        sw_drop(sw, p, DROP_PRIORITY);
        return;
    }
    p->egress_port = (uint16_t)number;
    uint32_t length = p->length < p->truncate_len ? p->length : p->truncate_len;
    const struct tm_queue *queue = &port->tm.queues[priority];
    if (SW_UNLIKELY(queue->packets >= sw->whole) && will_wait(sw, &port->tm, queue) &&
        tm_has_room(queue, length))
        p = pkt_pack(sw->pool, sw->program, p);
    if (SW_UNLIKELY(!tm_put(&port->tm, p, priority, length, now))) {
        sw_drop(sw, p, DROP_QUEUE_FULL);
        return;
    }
    sw->held++;
    has_backlog(sw, number);
    sw->has_newcomers = true;
}

static struct pkt *copy_whole(struct sw *sw, const struct pkt *from)
{
    const struct sw_program *program = sw->program;
    struct pkt *p = pkt_alloc(sw->pool, program->phv_size, program->headroom, from->frame_len);
    sw->copies++;
    unsigned book = BOOK_MADE + from->book % CLASSES;
    count_bytes(&sw->books.in[book], from->ingress_len);
    if (!p) {
        sw_drop_frame(sw, book, from->ingress_len, DROP_NO_MEMORY);
        return NULL;
    }
    uint8_t *frame = p->frame;
    uint8_t class = p->class;
    memcpy(p, from, sizeof *p + program->phv_size);
    p->class = class;
    p->frame = frame;
    /* What lies before data was parsed; it is kept in case this copy is resubmitted. */
    memcpy(frame, from->frame, from->frame_len);
    p->data = frame + (from->data - from->frame);
    p->book = (uint8_t)book;
    return p;
}

static void clear_requests(struct pkt *p)
{
    p->clone_session = p->clone_list = p->resubmit_list = p->recirculate_list = 0;
    p->digest_list = p->mcast_group = 0;
    p->exited = false;
}

/* Copies of `p` to all replicas of a group; p itself is left alone. */
static void replicate(struct sw *sw, const struct pkt *p, uint32_t group, int priority, ns_t now)
{
    const struct pre_set *set = pre_find(&sw->groups, group);
    for (uint32_t i = 0; set && i < set->n; i++) {
        struct pkt *copy = copy_whole(sw, p);
        if (!copy)
            continue;
        copy->rid = set->replicas[i].rid;
        copy->has_rid = true;
        unsigned queue = priority >= 0 ? (unsigned)priority : sw->program->priority(copy->phv);
        enqueue(sw, copy, set->replicas[i].port, queue, now);
    }
}

/* Multicast: the packet becomes its last replica. */
static void multicast(struct sw *sw, struct sw_run *run, struct pkt *p)
{
    const struct pre_set *set = pre_find(&sw->groups, p->mcast_group);
    if (!set || !set->n) {
        TRACE(sw, run, "  multicast group %u has no replicas: dropped", p->mcast_group);
        sw_drop(sw, p, set ? DROP_EMPTY_GROUP : DROP_NO_GROUP);
        return;
    }
    p->type = PKT_REPLICA;
    clear_requests(p);
    for (uint32_t i = 0; i < set->n; i++) {
        struct pkt *copy = i + 1 < set->n ? copy_whole(sw, p) : p;
        if (!copy)
            continue;
        copy->rid = set->replicas[i].rid;
        copy->has_rid = true;
        TRACE(sw, run, "  replica %u to port %u", copy->rid, set->replicas[i].port);
        enqueue(sw, copy, set->replicas[i].port, sw->program->priority(copy->phv), run->now);
    }
}

/* Hand a clone to all of its session's replicas; the clone itself is used up. */
static void send_clone(struct sw *sw, struct sw_run *run, struct pkt *clone,
                       const struct pre_set *session)
{
    clone->has_rid = false;
    if (session->max_bytes)
        clone->truncate_len = session->max_bytes;
    /* A field list may have kept the priority; BMv2 then queues by it. */
    uint8_t wanted = sw->program->priority(clone->phv);
    unsigned priority = session->priority ? session->priority : wanted;
    if (session->group)
        replicate(sw, clone, session->group, (int)priority, run->now);
    for (uint32_t i = 0; i < session->n; i++) {
        struct pkt *copy = i + 1 < session->n ? copy_whole(sw, clone) : clone;
        if (!copy)
            continue;
        copy->rid = session->replicas[i].rid;
        copy->has_rid = copy->rid != 0;
        TRACE(sw, run, "  clone to port %u", session->replicas[i].port);
        enqueue(sw, copy, session->replicas[i].port, priority, run->now);
    }
    if (!session->n) {
        sw->copies--; /* it served to make the group's copies only */
        sw->books.in[clone->book].packets--;
        sw->books.in[clone->book].bytes -= clone->ingress_len;
        pkt_release(sw->pool, clone);
    }
}

static const struct pre_set *wanted_session(struct sw *sw, struct sw_run *run, uint32_t request)
{
    uint32_t id = request & ~PKT_CLONE_REQUESTED;
    const struct pre_set *session = pre_find(&sw->sessions, id);
    if (!session)
        TRACE(sw, run, "  clone session %u is not configured: no clone", id);
    return session;
}

/* The original bytes, parsed again; only the listed fields of the packet's metadata survive. */
static void clone_ingress(struct sw *sw, struct sw_run *run, const struct pkt *p)
{
    const struct sw_program *program = sw->program;
    const struct pre_set *session = wanted_session(sw, run, p->clone_session);
    if (!session)
        return;
    struct pkt *clone = pkt_alloc(sw->pool, program->phv_size, program->headroom, p->frame_len);
    unsigned book = BOOK_MADE + p->book % CLASSES;
    bytes_t bytes = p->frame_len + p->absent;
    sw->copies++;
    count_bytes(&sw->books.in[book], bytes);
    if (!clone) {
        sw_drop_frame(sw, book, bytes, DROP_NO_MEMORY);
        return;
    }
    clone->book = (uint8_t)book;
    memcpy(clone->frame, p->frame, p->frame_len);
    program->clear(clone->phv);
    clone->ingress_port = p->ingress_port;
    clone->ingress_ns = p->ingress_ns;
    clone->absent = p->absent;
    clone->ingress_len = clone->length = p->frame_len + p->absent;
    struct sw_run again = {.sw = sw, .state = &sw->state, .pkt = clone, .now = run->now};
    program->receive(&again); /* as if it were received */
    program->reset_metadata(clone->phv);
    clone->type = PKT_INGRESS_CLONE;
    program->copy_list(p->clone_list, clone->phv, p->phv);
    send_clone(sw, run, clone, session);
}

/* Headers as they are now; only the listed fields of the metadata survive. */
static void clone_egress(struct sw *sw, struct sw_run *run, const struct pkt *p)
{
    const struct pre_set *session = wanted_session(sw, run, p->clone_session);
    struct pkt *clone = session ? copy_whole(sw, p) : NULL;
    if (!clone)
        return;
    clear_requests(clone);
    clone->type = PKT_EGRESS_CLONE;
    clone->truncate_len = PKT_WHOLE;
    sw->program->reset_metadata(clone->phv);
    sw->program->copy_list(p->clone_list, clone->phv, p->phv);
    send_clone(sw, run, clone, session);
}

/* Let a packet go round again with `frame`, keeping only the listed fields of its metadata. */
static void go_again(struct sw *sw, struct pkt *p, uint32_t list, enum pkt_type type,
                     uint8_t *frame, uint32_t len)
{
    const struct sw_program *program = sw->program;
    if (sw->n_again >= SW_LOOPING_MAX) {
        sw_drop(sw, p, DROP_LOOPING);
        return;
    }
    struct pkt *fresh = pkt_alloc(sw->pool, program->phv_size, program->headroom, len);
    if (!fresh) {
        sw_drop(sw, p, DROP_NO_MEMORY);
        return;
    }
    memcpy(fresh->frame, frame, len);
    program->clear(fresh->phv);
    program->copy_list(list, fresh->phv, p->phv);
    fresh->type = (uint8_t)type;
    fresh->ingress_port = p->ingress_port;
    fresh->absent = p->absent;
    fresh->ingress_len = fresh->length = len + p->absent;
    fresh->book = p->book;
    sw->books.changed[p->book] += (int64_t)fresh->ingress_len - p->ingress_len;
    pkt_release(sw->pool, p);
    fresh->next = NULL;
    if (sw->again)
        sw->again_tail->next = fresh;
    else
        sw->again = fresh;
    sw->again_tail = fresh;
    sw->n_again++;
    sw->held++;
}

static void run_ingress(struct sw *sw, struct pkt *p, ns_t now)
{
    struct sw_run run = {.sw = sw, .state = &sw->state, .pkt = p, .now = now};
    sw->program->ingress(&run);

    if (SW_UNLIKELY(p->clone_session))
        clone_ingress(sw, &run, p);
    if (SW_UNLIKELY(p->digest_list))
        digest_sample(sw, p->digest_list - 1, p->phv, now);
    if (spoilt(sw, p))
        return;
    if (SW_UNLIKELY(p->resubmit_list)) {
        TRACE(sw, &run, "  resubmitted");
        go_again(sw, p, p->resubmit_list, PKT_RESUBMITTED, p->frame, p->frame_len);
    } else if (SW_UNLIKELY(p->mcast_group)) {
        multicast(sw, &run, p);
    } else if (p->egress_spec == sw->state.drop_port) {
        sw_drop(sw, p, DROP_INGRESS);
    } else {
        TRACE(sw, &run, "  to the queue of port %u", p->egress_spec);
        p->type = PKT_NORMAL;
        clear_requests(p);
        enqueue(sw, p, p->egress_spec, sw->program->priority(p->phv), now);
    }
}

static void trace_packet(struct sw_run *run)
{
    static const char *const kinds[] = {[PKT_NORMAL] = "received", [PKT_RECIRCULATED] = "recirculated",
                                        [PKT_RESUBMITTED] = "resubmitted", [PKT_TIMER] = "a timer rang"};
    const struct pkt *p = run->pkt;
    char hex[2 * 64 + 1] = "";
    for (uint32_t i = 0; i < p->frame_len && i < 64; i++)
        snprintf(hex + 2 * i, 3, "%02x", p->frame[i]);
    sw_trace(run, "%llu ns: %s at port %u, %u bytes: %s%s", (unsigned long long)run->now,
             kinds[p->type] ? kinds[p->type] : "copied", p->ingress_port, p->frame_len, hex,
             p->frame_len > 64 ? "..." : "");
}

SW_INLINE void run_parser(struct sw *sw, struct pkt *p, ns_t now)
{
    struct sw_run run = {.sw = sw, .state = &sw->state, .pkt = p, .now = now};
    if (SW_UNLIKELY(sw->trace != NULL))
        trace_packet(&run);
    sw->program->receive(&run);
}

/* Serve what goes round again, up to `most` packets; returns how many were served. */
static unsigned run_again(struct sw *sw, ns_t now, unsigned most)
{
    unsigned turns = 0;
    for (; sw->again && turns < most; turns++) {
        struct pkt *p = sw->again;
        sw->again = p->next;
        sw->n_again--;
        sw->held--;
        run_parser(sw, p, now);
        run_ingress(sw, p, now);
    }
    return turns;
}

/* Packets that were gathered go through ingress, once their lookups are under way. */
static void run_gathered(struct sw *sw)
{
    sw->program->warm(&sw->state, sw->gathered, sw->n_gathered);
    for (uint32_t i = 0; i < sw->n_gathered; i++) {
        struct pkt *p = sw->gathered[i];
        sw->held--;
        run_ingress(sw, p, p->ingress_ns);
        if (SW_UNLIKELY(sw->again != NULL))
            run_again(sw, p->ingress_ns, SW_TURNS_MAX);
    }
    sw->n_gathered = 0;
}

/* Write down that a frame arrived; its class. */
SW_INLINE unsigned enter(struct sw *sw, struct sw_port *port, const uint8_t *frame, uint32_t len,
                         uint32_t absent)
{
    unsigned class = frame_class(frame, len);
    sw->received++;
    count_bytes(&sw->books.in[class], len + absent);
    if (SW_LIKELY(port != NULL)) {
        port->rx_packets++;
        port->rx_bytes += len + absent;
        count_bytes(&port->in[class], len + absent);
    }
    return class;
}

void sw_refuse(struct sw *sw, uint32_t number, const void *frame, uint32_t len, uint32_t absent,
               enum sw_drop why)
{
    sw_drop_frame(sw, enter(sw, sw_port(sw, number), frame, len, absent), len + absent, why);
}

void sw_receive(struct sw *sw, uint32_t number, const void *frame, uint32_t len, ns_t now)
{
    sw_receive_cut(sw, number, frame, len, 0, now);
}

SW_INLINE void take_in(struct sw *sw, struct sw_port *port, uint32_t number, const void *frame,
                    uint32_t len, uint32_t absent, ns_t now)
{
    unsigned book = enter(sw, port, frame, len, absent);
    if (port && SW_UNLIKELY(port->pcap_in != NULL))
        pcap_write(port->pcap_in, frame, len, len, now);
    const struct sw_program *program = sw->program;
    if (SW_UNLIKELY(!program || !port || len > SW_FRAME_MAX)) {
        sw_drop_frame(sw, book, len + absent,
                      !program ? DROP_NO_PROGRAM : port ? DROP_OVERSIZE : DROP_NO_PORT);
        return;
    }
    struct pkt *p = pkt_alloc(sw->pool, program->phv_size, program->headroom, len);
    if (SW_UNLIKELY(!p)) {
        sw_drop_frame(sw, book, len + absent, DROP_NO_MEMORY);
        return;
    }
    p->book = (uint8_t)book;
    memcpy(p->frame, frame, len);
    program->clear(p->phv);
    p->ingress_port = (uint16_t)number;
    p->ingress_ns = now;
    p->absent = absent;
    p->ingress_len = p->length = len + absent;
    run_parser(sw, p, now);
    if (SW_UNLIKELY(sw->state.n_large != 0)) {
        sw->gathered[sw->n_gathered++] = p;
        sw->held++;
        if (sw->n_gathered == SW_GATHER)
            run_gathered(sw);
        return;
    }
    if (SW_UNLIKELY(sw->n_gathered != 0))
        run_gathered(sw); /* the table became small in between */
    run_ingress(sw, p, now);
    if (SW_UNLIKELY(sw->again != NULL))
        run_again(sw, now, SW_TURNS_MAX);
}

/* Links that try again */

/* Whether there is something for the link to do, beside the port's own frames. */
static bool link_waits(const struct sw_port *port)
{
    return port->extra || (port->llr && llr_due(port->llr) != SW_NEVER);
}

static __attribute__((noinline)) void through_link(struct sw *sw, struct sw_port *port,
                                                   const uint8_t *frame, uint32_t len,
                                                   uint32_t absent, ns_t now)
{
    uint8_t copy[SW_FRAME_MAX + LLR_TAG];
    struct llr_frame kept;
    if (len > sizeof copy) {
        take_in(sw, port, port->number, frame, len, absent, now); /* which refuses it */
        return;
    }
    memcpy(copy, frame, len);
    if (llr_take(port->llr, copy, &len, absent, now) == LLR_PASSES) {
        take_in(sw, port, port->number, copy, len, absent, now);
        while (port->llr && llr_give(port->llr, &kept)) {
            take_in(sw, port, port->number, kept.bytes, kept.len, kept.absent, now);
            free(kept.bytes);
        }
    }
    if (link_waits(port))
        has_backlog(sw, port->number);
}

/* A frame came out of a cable. */
static void come_in(struct sw *sw, struct sw_port *port, const uint8_t *frame, uint32_t len,
                    uint32_t absent, ns_t now)
{
    if (SW_UNLIKELY(port->llr != NULL))
        through_link(sw, port, frame, len, absent, now);
    else
        take_in(sw, port, port->number, frame, len, absent, now);
}

/* The same at the end of a cable that may be bad, or is looked after. */
static __attribute__((noinline)) void through_cable(struct sw *sw, struct sw_port *port,
                                                    const uint8_t *frame, uint32_t len,
                                                    uint32_t absent, ns_t now)
{
    struct cable *cable = port->cables[CABLE_IN];
    enum cable_fate fate = cable ? cable_take(cable, frame, len, absent, now) : CABLE_PASSES;
    if (fate == CABLE_LOSES && port->llr) {
        llr_spoilt(port->llr, now);
        has_backlog(sw, port->number);
    }
    if (fate == CABLE_LOSES || fate == CABLE_DELAYS)
        return;
    if (fate == CABLE_DOUBLES)
        come_in(sw, port, frame, len, absent, now);
    come_in(sw, port, frame, len, absent, now);
}

void sw_receive_cut(struct sw *sw, uint32_t number, const void *frame, uint32_t len,
                    uint32_t absent, ns_t now)
{
    struct sw_port *port = sw_port(sw, number);
    if (SW_UNLIKELY(port && (port->cables[CABLE_IN] || port->llr)))
        through_cable(sw, port, frame, len, absent, now);
    else
        take_in(sw, port, number, frame, len, absent, now);
}

/* A timer's packet, which begins with its number, enters like one received. */
static void ring(struct sw *sw, uint32_t number, ns_t now)
{
    const uint8_t frame[TIMER_FRAME_BYTES] = {(uint8_t)(number >> 24), (uint8_t)(number >> 16),
                                              (uint8_t)(number >> 8), (uint8_t)number};
    const uint32_t len = sizeof frame;
    const struct sw_program *program = sw->program;
    struct pkt *p = pkt_alloc(sw->pool, program->phv_size, program->headroom, len);
    unsigned book = BOOK_MADE + frame_class(frame, len);
    sw->copies++; /* it came from nowhere, as copies do */
    count_bytes(&sw->books.in[book], len);
    if (!p) {
        sw_drop_frame(sw, book, len, DROP_NO_MEMORY);
        return;
    }
    p->book = (uint8_t)book;
    memcpy(p->frame, frame, len);
    program->clear(p->phv);
    p->type = PKT_TIMER;
    p->ingress_ns = now;
    p->ingress_len = p->length = len;
    run_parser(sw, p, now);
    run_ingress(sw, p, now);
    if (SW_UNLIKELY(sw->again != NULL))
        run_again(sw, now, SW_TURNS_MAX);
}

/* The way out */

static bool to_cpu(struct sw *sw, const struct pkt *p, ns_t now)
{
    struct event_head head = {.kind = EVENT_PACKET_IN, .body = p->len, .time = now};
    return event_put(&sw->events, &head, p->data);
}

SW_INLINE bool send(const struct sw_port *port, const uint8_t *frame, uint32_t len, uint32_t absent,
                    ns_t when)
{
    return SW_UNLIKELY(absent) ? port->ops->send_cut(port->driver, frame, len, absent, when)
                               : port->ops->send(port->driver, frame, len, when);
}

static __attribute__((noinline)) bool put_into_bad_cable(const struct sw_port *port,
                                                         const uint8_t *bytes, uint32_t len,
                                                         uint32_t absent, ns_t when)
{
    struct cable *cable = port->cables[CABLE_OUT];
    enum cable_fate fate = cable_take(cable, bytes, len, absent, when);
    if (fate == CABLE_LOSES || fate == CABLE_DELAYS)
        return true;
    if (fate == CABLE_DOUBLES && !send(port, bytes, len, absent, when))
        count_bytes(&cable->lost[frame_class(bytes, len)], len + absent);
    return send(port, bytes, len, absent, when);
}

/* Put a frame into a cable; whether it went there, whatever then becomes of it. */
static inline bool put_out(const struct sw_port *port, const uint8_t *bytes, uint32_t len,
                           uint32_t absent, ns_t when)
{
    if (SW_UNLIKELY(port->cables[CABLE_OUT] != NULL))
        return put_into_bad_cable(port, bytes, len, absent, when);
    return send(port, bytes, len, absent, when);
}

/* The same of a port's frame, unless the port is down. Of one that has a number the link has a copy,
 * which it sends again: whatever happens here, it was handed over. */
SW_INLINE enum sw_drop give_to_link(const struct sw_port *port, const struct pkt *p, ns_t when)
{
    const struct llr_frame *kept =
        SW_UNLIKELY(port->llr != NULL) ? llr_find(port->llr, p->link_number) : NULL;
    if (SW_UNLIKELY(kept != NULL))
        llr_handed(port->llr, kept,
                   port->is_up && put_out(port, kept->bytes, kept->len, kept->absent, when));
    else if (!port->is_up)
        return DROP_PORT_DOWN;
    else if (SW_UNLIKELY(port->llr != NULL) || !put_out(port, p->data, p->len, p->absent, when))
        return DROP_SEND_FAILED;
    return DROP_REASONS;
}

/* Hand a frame to its port; the packet is used up. */
SW_INLINE void transmit(struct sw *sw, struct sw_port *port, struct pkt *p, ns_t when)
{
    enum sw_drop why = DROP_REASONS;
    bool is_cpu = (int32_t)port->number == sw->cpu_port && !port->ops;
    if (is_cpu)
        why = to_cpu(sw, p, when) ? DROP_REASONS : DROP_CPU_BUSY;
    else if (!port->ops)
        why = DROP_NO_PORT;
    else
        why = give_to_link(port, p, when);
    if (SW_UNLIKELY(why != DROP_REASONS)) {
        sw_drop(sw, p, why);
        return;
    }
    if (SW_UNLIKELY(port->pcap_out != NULL))
        pcap_write(port->pcap_out, p->data, p->len, p->len, when);
    bytes_t size = p->len + p->absent;
    unsigned class = frame_class(p->data, p->len);
    port->tx_packets++;
    port->tx_bytes += size;
    count_bytes(&port->out[class], size);
    count_bytes(&sw->books.left[class][p->book], size);
    sw->books.changed[p->book] += (int64_t)size - p->ingress_len;
    sw->sent++;
    if (port->ops && port->ops->flush) {
        to_flush(sw, port->number);
        if (SW_UNLIKELY(port->ops->full(port->driver)))
            stall(sw, port);
    }
    pkt_release(sw->pool, p);
}

static ns_t earlier(ns_t a, ns_t b) { return a < b ? a : b; }

static bool is_waited_for(const struct sw_port *port)
{
    return port->ops && port->ops->is_waited_for && port->ops->is_waited_for(port->driver);
}

/* From the queue to the port's wire; returns bytes for the link, 0 if none left. */
static bytes_t depart(struct sw *sw, struct sw_port *port, struct pkt *p, ns_t start)
{
    uint32_t depth = port->tm.queues[p->priority].packets;
    if (port->ops && port->ops->fetch) /* it comes while egress runs */
        port->ops->fetch(port->driver);
    sw_port_fetch_out(port);
    if (p->is_packed) {
        struct pkt *whole = pkt_unpack(sw->pool, sw->program, p);
        if (SW_UNLIKELY(!whole)) {
            sw_drop(sw, p, DROP_NO_MEMORY);
            return 0;
        }
        p = whole;
    }
    struct sw_run run = {
        .sw = sw, .state = &sw->state, .pkt = p, .now = start, .deq_depth = depth};
    sw->program->egress(&run);
    if (SW_UNLIKELY(p->clone_session))
        clone_egress(sw, &run, p);
    if (spoilt(sw, p))
        return 0;
    if (p->egress_spec == sw->state.drop_port) {
        sw_drop(sw, p, DROP_EGRESS);
        return 0;
    }
    sw->program->deparse(&run);
    if (SW_UNLIKELY(p->recirculate_list)) {
        TRACE(sw, &run, "  recirculated");
        go_again(sw, p, p->recirculate_list, PKT_RECIRCULATED, p->data, p->len);
        return 0;
    }
    TRACE(sw, &run, "  sent to port %u, %u bytes", port->number, p->len);
    bytes_t size = p->len + p->absent;
    ns_t arrival = tm_sent(&port->tm, size, start);
    if (SW_UNLIKELY(port->llr != NULL)) /* as it begins: what it then takes for replays is behind it */
        p->link_number = port->is_up ? llr_number(port->llr, p->data, p->len, p->absent, start)
                                     : llr_no_number(port->llr);
    bool is_kept = sw->keep_on_wire && arrival > start;
    if (is_kept && !port->wire && is_waited_for(port)) {
        sw->due = earlier(sw->due, arrival);
        is_kept = false;
    }
    if (is_kept) {
        p->enq_ns = arrival; /* from here on, when it is due */
        p->next = NULL;
        if (port->wire)
            port->wire_tail->next = p;
        else
            port->wire = p;
        port->wire_tail = p;
        sw->held++;
    } else {
        transmit(sw, port, p, arrival);
    }
    return size;
}

/* Nothing can leave: packets stay where they are, before egress, and their queues grow. A port that
 * is down does not wait, what is for it is dropped. */
static bool must_wait(const struct sw_port *port) { return port->is_stalled && port->is_up; }

/* What the link itself has to send leaves before any frame of the port. */
static void service_link(struct sw *sw, struct sw_port *port, ns_t now)
{
    const struct llr_frame *frame;
    ns_t idle_at, since;
    if (!port->is_up || port->is_stalled)
        return;
    while ((idle_at = port->tm.idle_at) <= now &&
           (frame = llr_next(port->llr, now, &since)) != NULL) {
        /* Service may be late; the link was free from then on. */
        ns_t start = !sw->keep_on_wire ? now : since > idle_at ? since : idle_at;
        bool is_answer = frame->len == LLR_ANSWER_BYTES && !frame->absent;
        ns_t arrival = tm_occupied(&port->tm, frame->len + frame->absent - (is_answer ? 0 : LLR_TAG),
                                   start);
        struct cable_frame *extra =
            sw->keep_on_wire && arrival > now && (port->extra || !is_waited_for(port))
                ? malloc(sizeof *extra + frame->len)
                : NULL;
        if (!extra) {
            if (!port->ops || !put_out(port, frame->bytes, frame->len, frame->absent, arrival))
                break; /* it is sent again when nobody answers */
            llr_added(port->llr, frame->bytes, frame->len, frame->absent);
            continue;
        }
        *extra = (struct cable_frame){.due = arrival, .len = frame->len, .absent = frame->absent};
        memcpy(extra->bytes, frame->bytes, frame->len);
        if (port->extra)
            port->extra_tail->next = extra;
        else
            port->extra = extra;
        port->extra_tail = extra;
    }
    while (port->extra && port->extra->due <= now) {
        struct cable_frame *extra = port->extra;
        port->extra = extra->next;
        if (port->ops && put_out(port, extra->bytes, extra->len, extra->absent, extra->due))
            llr_added(port->llr, extra->bytes, extra->len, extra->absent);
        free(extra);
    }
    if (port->ops && port->ops->flush)
        to_flush(sw, port->number);
}

/* When it has more to send. */
static ns_t link_wake(const struct sw_port *port)
{
    ns_t due = llr_due(port->llr), idle_at = port->tm.idle_at;
    if (!port->is_up || port->is_stalled)
        return SW_NEVER;
    return earlier(due > idle_at ? due : idle_at, port->extra ? port->extra->due : SW_NEVER);
}

/* A queue has waited for credits for long: the program is told, by a number behind all timers'. */
static void ask_for_credits(struct sw *sw, struct sw_port *port, ns_t now)
{
    const struct sw_cells *timers = &sw->shared[SW_TIMER];
    unsigned asks = timers->at ? port->tm.schedule->asks : 0;
    for (port->tm.schedule->asks = 0; asks; asks &= asks - 1)
        ring(sw, timers->count + port->number * SW_QUEUES + (unsigned)__builtin_ctz(asks), now);
}

static bool link_is_full(const struct sw_port *port)
{
    return port->llr && port->is_up && llr_is_full(port->llr);
}

/* What a link that tries again held back leaves when it has room, and not when it might have. */
static void note_room(struct sw_port *port, ns_t now)
{
    bool is_full = link_is_full(port);
    if (port->was_full && !is_full)
        port->tm.opened = now;
    port->was_full = is_full;
}

static ns_t service_port(struct sw *sw, struct sw_port *port, ns_t now)
{
    ns_t start, wake = SW_NEVER;
    struct pkt *p;
    unsigned turns = 0; /* clones may keep a queue from ever becoming empty */
    if (SW_UNLIKELY(port->llr != NULL)) {
        service_link(sw, port, now);
        note_room(port, now);
    }
    while (!SW_UNLIKELY(must_wait(port)) && !SW_UNLIKELY(link_is_full(port)) &&
           (p = tm_take(&port->tm, port->number, &sw->shared[SW_QUEUE_GATE], now, &start, &wake)) != NULL) {
        sw->held--;
        depart(sw, port, p, start);
        if (++turns == SW_TURNS_MAX) {
            wake = now + 1;
            break;
        }
    }
    if (SW_UNLIKELY(port->tm.schedule != NULL))
        ask_for_credits(sw, port, now);
    while (port->wire && (port->wire->enq_ns <= now || is_waited_for(port)) && !must_wait(port)) {
        p = port->wire;
        port->wire = p->next;
        sw->due = earlier(sw->due, p->enq_ns);
        sw->held--;
        transmit(sw, port, p, p->enq_ns);
    }
    if (port->wire && !must_wait(port))
        wake = earlier(wake, port->wire->enq_ns);
    if (SW_UNLIKELY(port->llr != NULL))
        note_room(port, now);
    if (SW_UNLIKELY(port->llr != NULL && link_waits(port)))
        return earlier(wake, link_wake(port));
    if (port->wire)
        return wake;
    if (port->tm.backlog || SW_LIKELY(!port->llr)) /* what comes meanwhile waits as well */
        sw->busy_until[port->number] = port->tm.idle_at;
    if (!port->tm.backlog)
        no_backlog(sw, port->number);
    else if (port->tm.idle_at > now)
        set_aside(sw, port->number);
    return wake;
}

/* What a driver keeps for later is held, and what it lost is dropped: neither is sent. */
static void flush_port(struct sw *sw, struct sw_port *port)
{
    struct port_left left = port->ops->flush(port->driver);
    uint64_t kept = left.waiting.packets - port->waiting.packets; /* negative numbers wrap */
    sw->held += kept;
    sw->sent -= kept + left.lost.packets;
    sw->drops[DROP_SEND_FAILED] += left.lost.packets;
    lose(port, left.lost);
    port->tx_packets -= kept + left.lost.packets;
    port->tx_bytes -= left.waiting.bytes - port->waiting.bytes + left.lost.bytes;
    port->waiting = left.waiting;
    if (port->ops->full(port->driver))
        stall(sw, port);
}

static void flush_ports(struct sw *sw)
{
    if (SW_LIKELY(!sw->wants_flush))
        return;
    sw->wants_flush = false;
    for (unsigned word = 0; word < SW_COUNT(sw->to_flush); word++) {
        uint64_t left = sw->to_flush[word];
        for (sw->to_flush[word] = 0; left; left &= left - 1)
            flush_port(sw, sw->ports[word * 64 + (unsigned)__builtin_ctzll(left)]);
    }
}

SW_INLINE ns_t service_ports(struct sw *sw, ns_t now)
{
    ns_t wake;
    uint64_t copies = sw->copies;
    do { /* a departure may clone to a port that was passed over already */
        if (sw->copies - copies >= SW_TURNS_MAX)
            return now + 1;
        sw->has_newcomers = false;
        if (sw->soonest <= now)
            look_again(sw);
        wake = SW_NEVER;
        for (unsigned words = sw->backlog_words, word; words; words = sw->backlog_words & -2u << word) {
            word = (unsigned)__builtin_ctz(words);
            for (uint64_t left = sw->backlog[word]; left; left &= left - 1) {
                uint32_t number = word * 64 + (unsigned)__builtin_ctzll(left);
                if (sw->busy_until[number] > now)
                    set_aside(sw, number);
                else
                    wake = earlier(wake, service_port(sw, sw->ports[number], now));
            }
        }
    } while (sw->has_newcomers);
    return earlier(wake, sw->soonest);
}

void sw_tell_time(struct sw *sw, ns_t now)
{
    const struct sw_cells *clock = &sw->shared[SW_CLOCK];
    if (clock->at)
        sw_cell_write(clock, 0, now - sw->began);
}

/* Bad cables */

bool sw_set_cable(struct sw *sw, uint32_t number, enum cable_way way,
                  const struct cable_faults *faults)
{
    struct sw_port *port = sw_port(sw, number);
    if (port && !port->cables[way]) {
        port->cables[way] = cable_new(sw->seed << 16 ^ (number * CABLE_WAYS + way));
        sw->n_cables += port->cables[way] != NULL;
    }
    if (!port || !port->cables[way])
        return false;
    port->cables[way]->faults = *faults;
    port->cables[way]->ahead = way == CABLE_OUT && !sw->keep_on_wire ? port->tm.delay : 0;
    return true;
}

static void arrive_late(struct sw *sw, struct sw_port *port, enum cable_way way,
                        const struct cable_frame *frame, ns_t now)
{
    if (way == CABLE_IN)
        come_in(sw, port, frame->bytes, frame->len, frame->absent, now);
    else if (!port->ops || !port->is_up ||
             !send(port, frame->bytes, frame->len, frame->absent, now + port->cables[way]->ahead))
        cable_lose(port->cables[way], frame);
    else if (port->ops->flush)
        to_flush(sw, port->number);
}

/* Let arrive what is due by now; when the next is. */
static ns_t service_cables(struct sw *sw, ns_t now)
{
    ns_t wake = SW_NEVER;
    for (uint32_t number = 0; sw->n_cables && number < SW_PORTS; number++) {
        struct sw_port *port = sw->ports[number];
        for (unsigned way = 0; port && way < CABLE_WAYS; way++) {
            struct cable_frame *frame;
            if (!port->cables[way])
                continue;
            while ((frame = cable_give(port->cables[way], now)) != NULL) {
                arrive_late(sw, port, way, frame, now);
                free(frame);
            }
            wake = earlier(wake, cable_due(port->cables[way]));
        }
    }
    return wake;
}

/* Links and credits */

bool sw_set_replay(struct sw *sw, uint32_t number, const struct llr_config *config)
{
    struct sw_port *port = sw_port(sw, number);
    if (!port)
        return false;
    link_end(port);
    if (!config->room)
        return true;
    port->llr = llr_new(config);
    const struct sw_cells *cells = &sw->shared[SW_LINK_COUNTS];
    for (uint32_t i = 0; port->llr && cells->at && i < LLR_COUNTS; i++)
        port->llr->counts[i] = sw_cell(cells, number * LLR_COUNTS + i);
    return port->llr != NULL;
}

bool sw_set_credit(struct sw *sw, uint32_t number, const struct sw_credit *credit)
{
    struct sw_port *port = sw_port(sw, number);
    uint32_t cell = number * SW_QUEUES + credit->priority;
    for (enum sw_role role = SW_QUEUE_LIMIT; credit->least && role <= SW_QUEUE_WAITS; role++)
        if (!sw->shared[role].at || cell >= sw->shared[role].count)
            return false;
    if (!port || credit->priority >= SW_QUEUES)
        return false;
    struct tm_credit limits = {0};
    if (credit->least) {
        limits = (struct tm_credit){
            .least = credit->least,
            .cell = credit->cell ? credit->cell : 1,
            .ask_after = credit->ask_after ? credit->ask_after : 1,
            .limit = sw_cell(&sw->shared[SW_QUEUE_LIMIT], cell),
            .spent = sw_cell(&sw->shared[SW_QUEUE_SPENT], cell),
            .waited = sw_cell(&sw->shared[SW_QUEUE_WAITED], cell),
            .waits = sw_cell(&sw->shared[SW_QUEUE_WAITS], cell),
        };
        *limits.limit = *limits.spent + credit->credit;
    }
    return tm_hold(&port->tm, credit->priority, limits);
}

/* What egress recirculated goes through ingress now, and may want to leave at once. */
static __attribute__((noinline)) ns_t service_again(struct sw *sw, ns_t now)
{
    ns_t wake = now;
    for (unsigned turns = 0; sw->again; wake = service_ports(sw, now)) {
        if (turns == SW_TURNS_MAX)
            return now + 1;
        turns += run_again(sw, now, SW_TURNS_MAX - turns);
    }
    return wake;
}

ns_t sw_service(struct sw *sw, ns_t now)
{
    if (SW_UNLIKELY(now - sw->began >= SW_CLOCK_MAX) && sw->n_times)
        set_clock_back(sw, now);
    if (SW_UNLIKELY(sw->n_cables != 0))
        service_cables(sw, now);
    sw_tell_time(sw, now);
    if (sw->n_gathered)
        run_gathered(sw);
    if (SW_UNLIKELY(timer_due(sw) <= now))
        timer_ring(sw, ring, now);
    ns_t wake = service_ports(sw, now);
    if (SW_UNLIKELY(sw->again != NULL))
        wake = service_again(sw, now);
    if (SW_UNLIKELY(sw->n_cables != 0)) /* what left only now may be late too */
        wake = earlier(wake, service_cables(sw, now));
    flush_ports(sw);
    wake = earlier(wake, timer_due(sw));
    wake = earlier(wake, SW_LIKELY(now < sw->idle_check) ? sw->idle_check : idle_service(sw, now));
    return sw->program && sw->program->n_digests ? earlier(wake, digest_service(sw, now)) : wake;
}

/* The books */

static void count_list(struct port_count held[BOOKS], const struct pkt *p)
{
    for (; p; p = p->next)
        count_bytes(&held[p->book], p->ingress_len);
}

static void count_held(const struct sw *sw, struct port_count held[BOOKS])
{
    for (uint32_t number = 0; number < SW_PORTS; number++) {
        const struct sw_port *port = sw->ports[number];
        for (unsigned q = 0; port && q < SW_QUEUES; q++)
            count_list(held, port->tm.queues[q].head);
        if (port)
            count_list(held, port->wire);
    }
    count_list(held, sw->again);
    for (uint32_t i = 0; i < sw->n_gathered; i++)
        count_bytes(&held[sw->gathered[i]->book], sw->gathered[i]->ingress_len);
}

/* `tries_again`: whether the link makes good what its cable does. */
static void add_cable(struct book_report *report, const struct cable *cable, uint32_t number,
                      enum cable_way way, bool tries_again)
{
    struct port_count held[CLASSES] = {{0, 0}};
    enum book first = way == CABLE_IN ? BOOK_CABLE_IN_LOST : BOOK_CABLE_OUT_LOST;
    if (tries_again)
        first += BOOK_LLR_IN_LOST - BOOK_CABLE_IN_LOST;
    for (const struct cable_frame *frame = cable->head; frame; frame = frame->next)
        count_bytes(&held[frame_class(frame->bytes, frame->len)], frame->len + frame->absent);
    book_add(report, first, number, cable->lost, CLASSES);
    book_add(report, first + 1, number, cable->added, CLASSES);
    book_add(report, first + 2, number, held, CLASSES);
}

uint32_t sw_books(const struct sw *sw, struct book_line *lines, uint32_t room)
{
    const struct sw_books *books = &sw->books;
    struct book_report report = {lines, room, 0};
    struct port_count held[BOOKS] = {{0, 0}}, changed[BOOKS] = {{0, 0}};
    count_held(sw, held);
    for (unsigned kind = 0; kind < BOOKS; kind++)
        changed[kind].bytes = (uint64_t)books->changed[kind];
    book_add(&report, BOOK_IN, 0, books->in, BOOKS);
    book_add(&report, BOOK_CHANGED, 0, changed, BOOKS);
    for (unsigned class = 0; class < CLASSES; class++)
        book_add(&report, BOOK_LEFT, class, books->left[class], BOOKS);
    for (unsigned why = 0; why < DROP_REASONS; why++)
        book_add(&report, BOOK_DROPPED, why, books->dropped[why], BOOKS);
    book_add(&report, BOOK_HELD, 0, held, BOOKS);
    for (uint32_t number = 0; number < SW_PORTS; number++) {
        const struct sw_port *port = sw->ports[number];
        if (!port)
            continue;
        book_add(&report, BOOK_PORT_IN, number, port->in, CLASSES);
        book_add(&report, BOOK_PORT_OUT, number, port->out, CLASSES);
        book_add(&report, BOOK_PORT_LOST, number, &port->lost, 1);
        book_add(&report, BOOK_PORT_WAITING, number, &port->waiting, 1);
        for (unsigned way = 0; way < CABLE_WAYS; way++)
            if (port->cables[way])
                add_cable(&report, port->cables[way], number, way, port->llr != NULL);
        if (port->llr) {
            book_add(&report, BOOK_LLR_IN_LOST, number, port->llr->taken, CLASSES);
            book_add(&report, BOOK_LLR_IN_HELD, number, port->llr->held, CLASSES);
            book_add(&report, BOOK_LLR_OUT_LOST, number, port->llr->lost, CLASSES);
            book_add(&report, BOOK_LLR_OUT_ADDED, number, port->llr->added, CLASSES);
        }
    }
    return report.n;
}
