#include "net.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "pcap.h"
#include "state.h"

#define ARRIVALS 0      /* priorities of events at one instant: what arrives is seen first, */
#define WAKES 1         /* then whoever waited for the time goes on */

#define DATA_QUEUES 0x3Fu /* all but control and pause frames */
#define PAUSE_CLASS_ENABLE 16 /* in a frame of priority flow control: the opcode is before it, */
#define PAUSE_TIMES 18        /* and behind it a time for each class */
#define MOST_PAUSES 20000u

struct frame {
    struct frame *next;
    ns_t arrives;
    uint32_t stored, wire;
    uint8_t class; /* of its block */
    uint8_t kind;  /* of frame: books.h */
    uint8_t bytes[];
};

struct node {
    struct evq_event wake; /* first: an event is its node */
    struct net *net;
    struct sw *sw;        /* or */
    struct pkt_pool *own_pool; /* the switch's, while it shares ours */
    struct script script; /* a host */
    struct channel *out;  /* a host's only one */
    bool is_halted;       /* a host */
    uint32_t number, ports; /* ports: one more than the highest */
};

struct channel {
    struct evq_event arrival; /* first */
    struct net *net;
    struct node *from, *to;
    uint32_t from_port, to_port;
    struct sw_port *port; /* that sends into it, if that is a switch's */
    struct frame *head, *tail;
    bps_t rate;
    uint32_t overhead;
    ns_t delay;
    bool is_down;
    struct pcap *pcap;
    struct net_channel_report counts;
    struct port_count in[CLASSES], left[CLASSES], dropped[NET_WAYS_TO_LOSE][CLASSES];
    struct net_sample noted; /* the last note of it */
    uint64_t storms;         /* the same: how often its queues were let go */
    uint32_t number;
};

struct net {
    struct evq queue;
    struct node **nodes;
    struct channel **channels;
    uint32_t n_nodes, n_channels;
    uint64_t open;
    struct net_account account;
    struct blocks frames;
    struct pkt_pool pool; /* all switches': one set of warm blocks */
    struct evq_event sampler;
    ns_t sample_interval, acted; /* acted: when the last event was that is no mere look */
    bool gave_up;
    struct net_watch watch;
    struct net_sample *samples;
    uint64_t n_samples, most_samples;
    struct net_stock *stocks;
    uint64_t n_stocks, stock_stride, moment; /* every so manieth moment has a stock */
    struct net_pause *pauses;
    uint64_t n_pauses;
};

/* Frames */

static struct frame *frame_new(struct net *net, uint32_t stored)
{
    uint8_t class;
    struct frame *frame = blocks_take(&net->frames, sizeof *frame + stored, &class);
    if (SW_UNLIKELY(!frame))
        return NULL;
    frame->class = class;
    frame->next = NULL;
    return frame;
}

static void frame_release(struct net *net, struct frame *frame)
{
    blocks_give(&net->frames, frame, frame->class);
}

/* Channels */

static bool channel_put(struct channel *channel, const uint8_t *bytes, uint32_t stored,
                        uint32_t wire, ns_t arrives)
{
    struct net *net = channel->net;
    if (SW_UNLIKELY(arrives < net->queue.now))
        return false; /* its arrival could never happen, nor that of anything behind it */
    if (channel->head && arrives < channel->tail->arrives)
        arrives = channel->tail->arrives; /* a cable keeps order */
    struct frame *frame = frame_new(net, stored);
    if (!frame)
        return false;
    channel->counts.packets++;
    channel->counts.bytes += wire;
    frame->arrives = arrives;
    frame->stored = stored;
    frame->wire = wire;
    memcpy(frame->bytes, bytes, stored);
    if (channel->head) {
        channel->tail->next = frame;
    } else {
        channel->head = frame;
        evq_schedule(&net->queue, &channel->arrival, arrives, ARRIVALS);
    }
    channel->tail = frame;
    frame->kind = (uint8_t)frame_class(bytes, stored);
    count_bytes(&channel->in[frame->kind], wire);
    return true;
}

/* The bytes of data that wait at the port. They only grow between two departures, so a look at
 * each departure finds the most there ever were. */
static uint64_t queue_bytes(const struct channel *channel)
{
    const struct tm_port *port = &channel->port->tm;
    uint64_t bytes = 0;
    for (unsigned left = port->backlog & DATA_QUEUES; left; left &= left - 1)
        bytes += port->queues[__builtin_ctz(left)].bytes;
    return bytes;
}

static bool switch_puts(struct channel *channel, const uint8_t *frame, uint32_t stored,
                        uint32_t wire, ns_t when)
{
    uint64_t queue = queue_bytes(channel) + wire;
    if (queue > channel->counts.max_queue_bytes)
        channel->counts.max_queue_bytes = queue;
    return channel_put(channel, frame, stored, wire, when);
}

static bool switch_sends(void *driver, const uint8_t *frame, uint32_t len, ns_t when)
{
    return switch_puts(driver, frame, len, len, when);
}

static bool switch_sends_cut(void *driver, const uint8_t *frame, uint32_t len, uint32_t absent,
                             ns_t when)
{
    return switch_puts(driver, frame, len, len + absent, when);
}

static void switch_closes(void *driver) { (void)driver; }

static const struct port_ops SWITCH_PORT = {
    .send = switch_sends, .send_cut = switch_sends_cut, .close = switch_closes};

static bool host_sends(void *ctx, const uint8_t *frame, uint32_t stored, uint32_t wire,
                       uint8_t priority, ns_t at)
{
    (void)priority;
    struct channel *channel = ((struct node *)ctx)->out;
    ps_t lasts = (ps_t)(wire + channel->overhead) * 8 * 1000000000000u / channel->rate;
    return channel_put(channel, frame, stored, wire, at + (lasts + 999) / 1000 + channel->delay);
}

/* Nodes */

static void node_service(struct node *node, ns_t now)
{
    if (SW_UNLIKELY(node->is_halted))
        return;
    ns_t wake = node->sw ? sw_service(node->sw, now) : plan_service(node->script.plan, now);
    if (wake == SW_NEVER)
        evq_cancel(&node->net->queue, &node->wake);
    else
        evq_schedule(&node->net->queue, &node->wake, wake, WAKES);
}

static void node_woken(struct evq_event *event, ns_t now)
{
    struct node *node = (struct node *)event;
    const struct sw *sw = node->sw;
    uint64_t sent = sw ? sw->sent : 0, held = sw ? sw->held : 0;
    node_service(node, now);
    /* A switch that only read a clock of its program's has found all as it was. */
    if (!sw || sw->sent != sent || sw->held != held)
        node->net->acted = now;
}

static void note_pause(struct net *net, const struct channel *channel, uint16_t priority,
                       enum net_pause_kind kind, ns_t now)
{
    if (net->pauses && net->n_pauses < MOST_PAUSES)
        net->pauses[net->n_pauses++] =
            (struct net_pause){.at = now, .channel = channel->number, .priority = priority, .kind = kind};
}

/* What a frame says of pauses, if it is one that does. */
static void note_frame(struct net *net, const struct channel *channel, const struct frame *frame,
                       ns_t now)
{
    const uint8_t *bytes = frame->bytes;
    if (frame->stored < PAUSE_TIMES + 16 || bytes[14] != 0x01 || bytes[15] != 0x01)
        return;
    for (unsigned left = bytes[PAUSE_CLASS_ENABLE + 1]; left; left &= left - 1) {
        unsigned priority = (unsigned)__builtin_ctz(left);
        const uint8_t *quanta = bytes + PAUSE_TIMES + 2 * priority;
        note_pause(net, channel, (uint16_t)priority, quanta[0] | quanta[1] ? NET_XOFF : NET_XON, now);
    }
}

static void channel_arrival(struct evq_event *event, ns_t now)
{
    struct channel *channel = (struct channel *)event;
    struct net *net = channel->net;
    struct node *to = channel->to;
    struct frame *frame = channel->head;
    net->acted = now;
    channel->head = frame->next;
    if (channel->head)
        evq_schedule(&net->queue, event, channel->head->arrives, ARRIVALS);
    if (SW_UNLIKELY(channel->is_down || to->is_halted)) {
        channel->counts.lost++;
        count_bytes(&channel->dropped[channel->is_down ? NET_CUT : NET_HALTED][frame->kind],
                    frame->wire);
        frame_release(net, frame);
        return;
    }
    net->account.delivered++;
    count_bytes(&channel->left[frame->kind], frame->wire);
    if (SW_UNLIKELY(channel->pcap != NULL))
        pcap_write(channel->pcap, frame->bytes, frame->stored, frame->wire, now);
    if (SW_UNLIKELY(frame->bytes[12] == 0x88 && frame->bytes[13] == 0x08))
        note_frame(net, channel, frame, now);
    if (to->sw)
        sw_receive_cut(to->sw, channel->to_port, frame->bytes, frame->stored,
                       frame->wire - frame->stored, now);
    else if (to->script.plan)
        plan_receive(to->script.plan, frame->bytes, frame->stored, frame->wire, now);
    frame_release(net, frame);
    if (to->sw || to->script.plan)
        node_service(to, now);
}

/* An event is some steps away: what it will want, each as soon as its address is in the cache. */
static void fetch(const struct evq_event *event, unsigned steps)
{
    if (event->happen != channel_arrival)
        return;
    const struct channel *channel = (const struct channel *)event;
    const struct node *to = channel->to;
    if (steps == 3) {
        __builtin_prefetch(channel->head);
        __builtin_prefetch((const uint8_t *)channel->head + 64);
        __builtin_prefetch(to);
    } else if (steps == 2 && to->sw) {
        __builtin_prefetch(&to->sw->ports[channel->to_port]);
        __builtin_prefetch(&to->sw->pool);
    } else if (steps == 1 && to->sw) {
        __builtin_prefetch(to->sw->ports[channel->to_port]);
    }
}

static void transfer_ended(void *ctx, const struct transfer *transfer)
{
    (void)transfer;
    struct net *net = ((struct node *)ctx)->net;
    net->queue.stop = --net->open == 0;
}

/* Notes */

/* Forget every second moment, and look half as often from now on. */
static void thin_samples(struct net *net)
{
    uint64_t kept = 0, moment = 0;
    for (uint64_t i = 0; i < net->n_samples; i++) {
        moment += i && net->samples[i].at != net->samples[i - 1].at;
        if (moment % 2 == 0)
            net->samples[kept++] = net->samples[i];
    }
    net->n_samples = kept;
    net->sample_interval *= 2;
}

static void thin_stocks(struct net *net)
{
    uint64_t kept = 0, moment = 0;
    for (uint64_t i = 0; i < net->n_stocks; i++) {
        moment += i && net->stocks[i].at != net->stocks[i - 1].at;
        if (moment % 2 == 0)
            net->stocks[kept++] = net->stocks[i];
    }
    net->n_stocks = kept;
    net->stock_stride *= 2;
}

static uint32_t cell_of(const struct sw *sw, uint32_t reg, unsigned cell)
{
    struct sw_cells cells = state_register(&sw->state, reg);
    return (uint32_t)tm_gate_time(&cells, cell);
}

/* What the classes of a switch hold: an entry for each that holds anything; how many. */
static unsigned stock_of(const struct net *net, const struct node *node, ns_t now,
                         struct net_stock found[SW_QUEUES])
{
    const struct net_watch *watch = &net->watch;
    const struct sw *sw = node->sw;
    uint32_t pool = cell_of(sw, watch->pool_used, 0);
    unsigned count = 0;
    if (!pool && !cell_of(sw, watch->headroom_used, 0))
        return 0;
    for (unsigned priority = 0; priority < SW_QUEUES; priority++) {
        struct net_stock stock = {
            .at = now, .node = node->number, .priority = priority, .pool = pool};
        bool is_lossless = watch->lossless >> priority & 1;
        for (uint32_t port = 0; port < node->ports; port++) {
            unsigned cell = port * SW_QUEUES + priority;
            uint32_t in = cell_of(sw, watch->in_used, cell);
            uint32_t held = is_lossless ? in : cell_of(sw, watch->out_used, cell);
            stock.used += in;
            stock.headroom += cell_of(sw, watch->in_headroom, cell);
            if (held > stock.most) {
                stock.most = held;
                stock.port = port;
            }
        }
        if (stock.used || stock.headroom)
            found[count++] = stock;
    }
    return count;
}

static void note_stocks(struct net *net, ns_t now)
{
    if (!net->stocks || net->moment++ % net->stock_stride)
        return;
    for (uint32_t i = 0; i < net->n_nodes; i++) {
        struct net_stock found[SW_QUEUES];
        unsigned count = net->nodes[i]->sw ? stock_of(net, net->nodes[i], now, found) : 0;
        if (net->n_stocks + count > net->most_samples)
            thin_stocks(net);
        if (net->n_stocks + count <= net->most_samples)
            memcpy(net->stocks + net->n_stocks, found, count * sizeof *found);
        else
            count = 0;
        net->n_stocks += count;
    }
}

/* Whether the watchdog let go queues before a channel since the last look. */
static void note_storms(struct net *net, struct channel *channel, ns_t now)
{
    const struct sw *sw = channel->from->sw;
    uint64_t sum = 0;
    unsigned first = channel->from_port * SW_QUEUES;
    for (unsigned left = net->watch.classes; left; left &= left - 1)
        sum += sw->state.counters[net->watch.storms][first + (unsigned)__builtin_ctz(left)].packets;
    if (sum != channel->storms)
        note_pause(net, channel, 0, NET_STUCK, now);
    channel->storms = sum;
}

static uint64_t dropped_packets(const struct sw *sw, uint32_t counter)
{
    uint64_t packets = 0;
    for (uint64_t reason = 0; reason < sw->program->counters[counter].size; reason++)
        packets += sw->state.counters[counter][reason].packets;
    return packets;
}

/* How long the data before a channel has stood still, its lossless classes added up. A pause counts when it is received; what of
 * it is to come has not been waited for. */
static ns_t paused(const struct channel *channel, ns_t now)
{
    const struct net_watch *watch = &channel->net->watch;
    const struct sw *sw = channel->from->sw;
    ns_t sum = 0;
    if (!sw) {
        struct plan *plan = channel->from->script.plan;
        for (unsigned left = plan ? watch->classes : 0; left; left &= left - 1)
            sum += ep_counters(plan_endpoint(plan), now)->paused_ns[__builtin_ctz(left)];
        return sum;
    }
    struct sw_cells cells = state_register(&sw->state, watch->pause_total);
    for (unsigned left = watch->classes; left; left &= left - 1) {
        unsigned queue = channel->from_port * SW_QUEUES + (unsigned)__builtin_ctz(left);
        ns_t until = tm_gate_time(&sw->shared[SW_QUEUE_GATE], queue);
        sum += tm_gate_time(&cells, queue) - (until > now ? until - now : 0);
    }
    return sum;
}

static struct net_sample look_at(const struct channel *channel, uint32_t number, ns_t now)
{
    const struct sw *sw = channel->from->sw;
    const struct net_watch *watch = &channel->net->watch;
    struct net_sample note = {.at = now,
                              .channel = number,
                              .bytes = channel->counts.bytes,
                              .paused = paused(channel, now)};
    if (sw) {
        note.queue_bytes = (uint32_t)queue_bytes(channel);
        note.marked = sw->state.counters[watch->marked][channel->from_port].packets;
        note.dropped = dropped_packets(sw, watch->dropped);
    }
    return note;
}

/* When to look again. Where there was nothing to note nothing changes before the next event, however
 * long that takes: looks that would find nothing are left out. */
static ns_t next_look(const struct net *net, ns_t now, bool was_noted)
{
    ns_t next = evq_next(&net->queue), interval = net->sample_interval;
    if (was_noted || next <= now + interval)
        return now + interval;
    return now + (next - now + interval - 1) / interval * interval;
}

static void sample(struct evq_event *event, ns_t now)
{
    struct net *net = (struct net *)((char *)event - offsetof(struct net, sampler));
    if (net->n_samples + net->n_channels > net->most_samples)
        thin_samples(net);
    uint64_t before = net->n_samples;
    for (uint32_t i = 0; i < net->n_channels && net->n_samples < net->most_samples; i++) {
        struct channel *channel = net->channels[i];
        struct net_sample note = look_at(channel, i, now), *noted = &channel->noted;
        if (channel->port && net->watch.storms != NET_NOWHERE)
            note_storms(net, channel, now);
        if (!note.queue_bytes && note.bytes == noted->bytes && note.paused == noted->paused)
            continue;
        net->samples[net->n_samples++] = *noted = note;
    }
    note_stocks(net, now);
    if (evq_next(&net->queue) != EVQ_NEVER) /* else nothing is to come */
        evq_schedule(&net->queue, event, next_look(net, now, net->n_samples != before),
                     EVQ_OBSERVER);
}

void net_sample(struct net *net, const struct net_watch *watch, ns_t interval, uint32_t most)
{
    net->watch = *watch;
    if (!interval)
        return;
    net->samples = malloc(most * sizeof *net->samples);
    net->most_samples = net->samples ? most : 0;
    net->sample_interval = interval;
    net->sampler.happen = sample;
    net->pauses = malloc(MOST_PAUSES * sizeof *net->pauses);
    net->stock_stride = 1;
    if (watch->in_used != NET_NOWHERE)
        net->stocks = malloc(most * sizeof *net->stocks);
    if (net->samples)
        evq_schedule(&net->queue, &net->sampler, net->queue.now + interval, EVQ_OBSERVER);
}

ns_t net_next(const struct net *net) { return evq_next(&net->queue); }

void net_look(const struct net *net, struct net_sample *notes)
{
    for (uint32_t i = 0; i < net->n_channels; i++)
        notes[i] = look_at(net->channels[i], i, net->queue.now);
}

void net_glance(const struct net *net, struct net_glance *glance)
{
    *glance = (struct net_glance){0};
    for (uint32_t i = 0; i < net->n_channels; i++) {
        const struct channel *channel = net->channels[i];
        if (!channel->to->sw)
            glance->into_hosts += channel->counts.bytes;
        if (!channel->port)
            continue;
        const struct sw *sw = channel->from->sw;
        uint64_t queue = queue_bytes(channel);
        if (queue > glance->queue_bytes) {
            glance->queue_bytes = queue;
            glance->channel = i;
        }
        bool held = false;
        for (unsigned left = net->watch.classes; left; left &= left - 1) {
            unsigned cell = channel->from_port * SW_QUEUES + (unsigned)__builtin_ctz(left);
            held = held || tm_gate_time(&sw->shared[SW_QUEUE_GATE], cell) > net->queue.now;
        }
        glance->paused += held;
        glance->marked += sw->state.counters[net->watch.marked][channel->from_port].packets;
    }
    for (uint32_t i = 0; i < net->n_nodes; i++)
        if (net->nodes[i]->sw)
            glance->dropped += dropped_packets(net->nodes[i]->sw, net->watch.dropped);
}

const struct net_sample *net_samples(const struct net *net, uint64_t *count)
{
    *count = net->n_samples;
    return net->samples;
}

const struct net_stock *net_stocks(const struct net *net, uint64_t *count)
{
    *count = net->n_stocks;
    return net->stocks;
}

const struct net_pause *net_pauses(const struct net *net, uint64_t *count)
{
    *count = net->n_pauses;
    return net->pauses;
}

bool net_record(struct net *net, uint32_t channel, const char *path)
{
    net->channels[channel]->pcap = pcap_open(path, false);
    return net->channels[channel]->pcap != NULL;
}

/* Building */

struct net *net_new(uint64_t seed)
{
    struct net *net = calloc(1, sizeof *net);
    if (net && !evq_init(&net->queue, seed)) {
        free(net);
        return NULL;
    }
    if (net) {
        net->queue.soon = fetch;
        pkt_pool_init(&net->pool);
        blocks_init(&net->frames, BLOCKS_LINE);
    }
    return net;
}

void net_free(struct net *net)
{
    if (!net)
        return;
    for (uint32_t i = 0; i < net->n_channels; i++) {
        pcap_close(net->channels[i]->pcap);
        free(net->channels[i]);
    }
    for (uint32_t i = 0; i < net->n_nodes; i++) {
        if (net->nodes[i]->sw)
            sw_move(net->nodes[i]->sw, net->nodes[i]->own_pool);
        if (net->nodes[i]->script.plan)
            plan_free(net->nodes[i]->script.plan);
        free(net->nodes[i]);
    }
    blocks_free(&net->frames);
    pkt_pool_free(&net->pool);
    free(net->samples);
    free(net->stocks);
    free(net->pauses);
    free(net->channels);
    free(net->nodes);
    evq_free(&net->queue);
    free(net);
}

/* Room for one more pointer in a list of `used`. */
static bool make_room(void *list, uint32_t used)
{
    if (used & (used - 1)) /* room is always a power of two */
        return true;
    void **pointers = realloc(*(void **)list, (used ? used * 2 : 1) * sizeof *pointers);
    if (pointers)
        *(void **)list = pointers;
    return pointers != NULL;
}

static struct node *add_node(struct net *net)
{
    struct node *node = calloc(1, sizeof *node);
    if (!node || !make_room(&net->nodes, net->n_nodes)) {
        free(node);
        return NULL;
    }
    node->net = net;
    node->wake.happen = node_woken;
    node->number = net->n_nodes;
    net->nodes[net->n_nodes++] = node;
    return node;
}

int64_t net_add_switch(struct net *net, struct sw *sw)
{
    struct node *node = add_node(net);
    if (!node)
        return -1;
    node->sw = sw;
    node->own_pool = sw->pool;
    sw_move(sw, &net->pool);
    sw->keep_on_wire = false; /* a channel does that */
    return net->n_nodes - 1;
}

int64_t net_add_host(struct net *net)
{
    struct node *node = add_node(net);
    if (!node)
        return -1;
    node->script.port =
        (struct plan_port){.ctx = node, .transmit = host_sends, .ended = transfer_ended};
    return net->n_nodes - 1;
}

const char *net_host_line(struct net *net, uint32_t number, const char *line)
{
    struct script *script = &net->nodes[number]->script;
    char copy[SCRIPT_LINE_MAX];
    if (strlen(line) >= sizeof copy)
        return "the line is too long";
    strcpy(copy, line);
    return script_line(script, copy) ? NULL : script->problem;
}

int64_t net_add_channel(struct net *net, uint32_t from, uint32_t from_port, uint32_t to,
                        uint32_t to_port, bps_t rate, uint32_t overhead, ns_t delay)
{
    struct channel *channel = calloc(1, sizeof *channel);
    if (!channel || !make_room(&net->channels, net->n_channels)) {
        free(channel);
        return -1;
    }
    *channel = (struct channel){.arrival.happen = channel_arrival,
                                .net = net,
                                .from = net->nodes[from],
                                .from_port = from_port,
                                .to = net->nodes[to],
                                .to_port = to_port,
                                .rate = rate,
                                .overhead = overhead,
                                .delay = delay,
                                .number = net->n_channels};
    struct node *node = net->nodes[from];
    if (node->ports <= from_port)
        node->ports = from_port + 1;
    if (!node->sw)
        node->out = channel;
    else if (!sw_attach(node->sw, from_port, &SWITCH_PORT, channel)) {
        free(channel);
        return -1;
    } else {
        channel->port = node->sw->ports[from_port];
    }
    net->channels[net->n_channels++] = channel;
    return net->n_channels - 1;
}

void net_set_up(struct net *net, uint32_t number, bool is_up)
{
    struct channel *channel = net->channels[number];
    ns_t now = net->queue.now;
    channel->is_down = !is_up;
    if (channel->from->sw) {
        sw_set_up(channel->from->sw, channel->from_port, is_up, now);
        node_service(channel->from, now);
    }
}

void net_set_halted(struct net *net, uint32_t number, bool is_halted)
{
    struct node *node = net->nodes[number];
    node->is_halted = is_halted;
    if (is_halted)
        evq_cancel(&net->queue, &node->wake);
    else if (node->script.plan)
        node_service(node, net->queue.now);
}

void net_set_rate(struct net *net, uint32_t number, bps_t rate)
{
    struct channel *channel = net->channels[number];
    channel->rate = rate;
    if (channel->from->script.plan)
        ep_set_link(plan_endpoint(channel->from->script.plan), rate);
}

/* Running */

/* To somebody who gave up, what is quiet ended when something happened last. */
static ns_t net_now(const struct net *net)
{
    return net->gave_up && net_is_quiet(net) ? net->acted : net->queue.now;
}

void net_start(struct net *net)
{
    for (uint32_t i = 0; i < net->n_nodes; i++) {
        struct plan *plan = net->nodes[i]->script.plan;
        if (plan)
            net->open += plan_open(plan);
    }
    for (uint32_t i = 0; i < net->n_nodes; i++) {
        struct node *node = net->nodes[i];
        if (node->script.plan)
            plan_start(node->script.plan, net->queue.now);
        if (node->script.plan || node->sw)
            node_service(node, net->queue.now);
    }
}

ns_t net_run(struct net *net, ns_t until, uint64_t most_events)
{
    if (net->samples && !evq_is_scheduled(&net->sampler) && net->queue.used) /* something was done from outside */
        evq_schedule(&net->queue, &net->sampler, net->queue.now + net->sample_interval,
                     EVQ_OBSERVER);
    if (net->open)
        evq_run(&net->queue, until, most_events);
    return net_now(net);
}

ns_t net_give_up(struct net *net)
{
    net->gave_up = true;
    return net_now(net);
}

void net_wake(struct net *net, uint32_t node) { node_service(net->nodes[node], net->queue.now); }

uint64_t net_open_transfers(const struct net *net) { return net->open; }

bool net_is_quiet(const struct net *net)
{
    return net->queue.used == evq_is_scheduled(&net->sampler);
}

void net_account(const struct net *net, struct net_account *account)
{
    *account = net->account;
    account->events = net->queue.happened;
}

uint32_t net_books(const struct net *net, uint32_t number, struct book_line *lines, uint32_t room)
{
    const struct channel *channel = net->channels[number];
    struct book_telling told = {lines, room, 0};
    struct port_count held[CLASSES] = {{0, 0}};
    for (const struct frame *frame = channel->head; frame; frame = frame->next)
        count_bytes(&held[frame_class(frame->bytes, frame->stored)], frame->wire);
    book_tell(&told, BOOK_IN, 0, channel->in, CLASSES);
    book_tell(&told, BOOK_LEFT, 0, channel->left, CLASSES);
    for (unsigned why = 0; why < NET_WAYS_TO_LOSE; why++)
        book_tell(&told, BOOK_DROPPED, why, channel->dropped[why], CLASSES);
    book_tell(&told, BOOK_HELD, 0, held, CLASSES);
    return told.n;
}

void net_channel_report(const struct net *net, uint32_t channel, struct net_channel_report *report)
{
    *report = net->channels[channel]->counts;
}

bool net_host_report(struct net *net, uint32_t node, int file)
{
    int own = dup(file);
    FILE *stream = own < 0 ? NULL : fdopen(own, "w");
    if (!stream) {
        close(own);
        return false;
    }
    script_report(net->nodes[node]->script.plan, stream, net_now(net));
    return fclose(stream) == 0;
}

void net_host_times(struct net *net, uint32_t node, int64_t *starts, int64_t *ends, uint64_t count)
{
    uint32_t transfers;
    const struct transfer *transfer = plan_transfers(net->nodes[node]->script.plan, &transfers);
    for (const struct transfer *end = transfer + transfers; transfer < end; transfer++) {
        uint32_t id = transfer->message.id;
        if (id >= count)
            continue;
        if (transfer->kind != TRANSFER_RECEIVE && transfer->start != NS_NEVER)
            starts[id] = (int64_t)transfer->start;
        if (transfer->kind != TRANSFER_SEND && transfer->state == TRANSFER_DONE)
            ends[id] = (int64_t)transfer->end;
    }
}

#define PRIORITIES 8

uint32_t net_host_counters(struct net *net, uint32_t node, uint64_t *values, uint32_t room)
{
    const struct ep_counters *counters =
        ep_counters(plan_endpoint(net->nodes[node]->script.plan), net_now(net));
    uint32_t n = 0;
#define COUNTER(name, about) \
    if (n < room)            \
        values[n] = counters->name; \
    n++;
    EP_COUNTERS(COUNTER)
#undef COUNTER
    for (unsigned priority = 0; priority < PRIORITIES; priority++, n++)
        if (n < room)
            values[n] = counters->paused_ns[priority];
    return n;
}

const char *net_counter_name(uint32_t number)
{
    static const char *const NAMES[] = {
#define COUNTER(name, about) #name,
        EP_COUNTERS(COUNTER)
#undef COUNTER
        "paused_0_ns", "paused_1_ns", "paused_2_ns", "paused_3_ns",
        "paused_4_ns", "paused_5_ns", "paused_6_ns", "paused_7_ns",
    };
    return number < sizeof NAMES / sizeof *NAMES ? NAMES[number] : NULL;
}
