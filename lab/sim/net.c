#include "net.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FRAME_CLASSES 3 /* blocks of 256, 2048 and 16384 bytes */
#define ARRIVALS 0      /* priorities of events at one instant: what arrives is seen first, */
#define WAKES 1         /* then whoever waited for the time goes on */

struct frame {
    struct frame *next;
    ns_t arrives;
    uint32_t stored, wire;
    uint32_t class;
    uint8_t bytes[];
};

struct node {
    struct evq_event wake; /* first: an event is its node */
    struct net *net;
    struct sw *sw;        /* or */
    struct script script; /* a host */
    struct channel *out;  /* a host's only one */
};

struct channel {
    struct evq_event arrival; /* first */
    struct net *net;
    struct node *to;
    uint32_t to_port;
    struct frame *head, *tail;
    bps_t rate;
    uint32_t overhead;
    ns_t delay;
    uint32_t loss;
    struct net_channel_report counts;
};

struct net {
    struct evq queue;
    struct node **nodes;
    struct channel **channels;
    uint32_t n_nodes, n_channels;
    uint64_t open, random;
    struct net_account account;
    struct frame *free[FRAME_CLASSES];
};

static const uint32_t CLASS_BYTES[FRAME_CLASSES] = {256, 2048, 16384};

/* Frames */

static struct frame *frame_new(struct net *net, uint32_t stored)
{
    uint32_t class = 0;
    while (CLASS_BYTES[class] < sizeof(struct frame) + stored)
        if (++class == FRAME_CLASSES)
            return NULL;
    struct frame *frame = net->free[class];
    if (frame)
        net->free[class] = frame->next;
    else if (!(frame = malloc(CLASS_BYTES[class])))
        return NULL;
    frame->class = class;
    frame->next = NULL;
    return frame;
}

static void frame_release(struct net *net, struct frame *frame)
{
    frame->next = net->free[frame->class];
    net->free[frame->class] = frame;
}

/* xorshift64*: whether a frame is lost. Its own generator, so that loss does not move tie-breaks. */
static uint32_t draw(struct net *net)
{
    net->random ^= net->random >> 12;
    net->random ^= net->random << 25;
    net->random ^= net->random >> 27;
    return (uint32_t)(net->random * 0x2545F4914F6CDD1Du >> 32);
}

/* Channels */

static bool channel_put(struct channel *channel, const uint8_t *bytes, uint32_t stored,
                        uint32_t wire, ns_t arrives)
{
    struct net *net = channel->net;
    channel->counts.packets++;
    channel->counts.bytes += wire;
    net->account.sent++;
    if (channel->loss && draw(net) < channel->loss) {
        channel->counts.lost++;
        net->account.lost++;
        return true;
    }
    struct frame *frame = frame_new(net, stored);
    if (!frame)
        return false;
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
    net->account.under_way++;
    return true;
}

static bool switch_sends(void *driver, const uint8_t *frame, uint32_t len, ns_t when)
{
    return channel_put(driver, frame, len, len, when);
}

static bool switch_sends_cut(void *driver, const uint8_t *frame, uint32_t len, uint32_t absent,
                             ns_t when)
{
    return channel_put(driver, frame, len, len + absent, when);
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
    ns_t wake = node->sw ? sw_service(node->sw, now) : plan_service(node->script.plan, now);
    if (wake == SW_NEVER)
        evq_cancel(&node->net->queue, &node->wake);
    else
        evq_schedule(&node->net->queue, &node->wake, wake, WAKES);
}

static void node_woken(struct evq_event *event, ns_t now) { node_service((struct node *)event, now); }

static void channel_arrival(struct evq_event *event, ns_t now)
{
    struct channel *channel = (struct channel *)event;
    struct net *net = channel->net;
    struct node *to = channel->to;
    struct frame *frame = channel->head;
    channel->head = frame->next;
    if (channel->head)
        evq_schedule(&net->queue, event, channel->head->arrives, ARRIVALS);
    net->account.under_way--;
    net->account.delivered++;
    if (to->sw)
        sw_receive_cut(to->sw, channel->to_port, frame->bytes, frame->stored,
                       frame->wire - frame->stored, now);
    else if (to->script.plan)
        plan_receive(to->script.plan, frame->bytes, frame->stored, frame->wire, now);
    frame_release(net, frame);
    if (to->sw || to->script.plan)
        node_service(to, now);
}

static void transfer_ended(void *ctx, const struct transfer *transfer)
{
    (void)transfer;
    struct net *net = ((struct node *)ctx)->net;
    net->queue.stop = --net->open == 0;
}

/* Building */

struct net *net_new(uint64_t seed)
{
    struct net *net = calloc(1, sizeof *net);
    if (net && !evq_init(&net->queue, seed)) {
        free(net);
        return NULL;
    }
    if (net)
        net->random = seed * 2 + 1;
    return net;
}

void net_free(struct net *net)
{
    if (!net)
        return;
    for (uint32_t i = 0; i < net->n_channels; i++) {
        for (struct frame *frame = net->channels[i]->head, *next; frame; frame = next) {
            next = frame->next;
            free(frame);
        }
        free(net->channels[i]);
    }
    for (uint32_t i = 0; i < net->n_nodes; i++) {
        if (net->nodes[i]->script.plan)
            plan_free(net->nodes[i]->script.plan);
        free(net->nodes[i]);
    }
    for (unsigned class = 0; class < FRAME_CLASSES; class++)
        for (struct frame *frame = net->free[class], *next; frame; frame = next) {
            next = frame->next;
            free(frame);
        }
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
    net->nodes[net->n_nodes++] = node;
    return node;
}

int64_t net_add_switch(struct net *net, struct sw *sw)
{
    struct node *node = add_node(net);
    if (!node)
        return -1;
    node->sw = sw;
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
                                .to = net->nodes[to],
                                .to_port = to_port,
                                .rate = rate,
                                .overhead = overhead,
                                .delay = delay};
    struct node *node = net->nodes[from];
    if (!node->sw)
        node->out = channel;
    else if (!sw_attach(node->sw, from_port, &SWITCH_PORT, channel)) {
        free(channel);
        return -1;
    }
    net->channels[net->n_channels++] = channel;
    return net->n_channels - 1;
}

void net_set_loss(struct net *net, uint32_t channel, uint32_t share)
{
    net->channels[channel]->loss = share;
}

/* Running */

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
    if (net->open)
        evq_run(&net->queue, until, most_events);
    return net->queue.now;
}

void net_wake(struct net *net, uint32_t node) { node_service(net->nodes[node], net->queue.now); }

uint64_t net_open_transfers(const struct net *net) { return net->open; }

void net_account(const struct net *net, struct net_account *account)
{
    *account = net->account;
    account->events = net->queue.happened;
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
    script_report(net->nodes[node]->script.plan, stream, net->queue.now);
    return fclose(stream) == 0;
}
