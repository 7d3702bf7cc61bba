#include "net.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "likeness.h"
#include "llr.h"
#include "pcap.h"
#include "ranks.h"
#include "state.h"
#include "team.h"

#define ARRIVALS 0      /* priorities of events at one instant: what arrives is seen first, */
#define WAKES 1         /* then whoever waited for the time goes on */

#define DATA_QUEUES 0x3Fu /* all but control and pause frames */
#define PAUSE_CLASS_ENABLE 16 /* in a frame of priority flow control: the opcode is before it, */
#define PAUSE_TIMES 18        /* and behind it a time for each class */

/* Threads that get no processor delay each other by a time slice a turn: better do it alone. A turn in
 * which one waits longer than all of it would have taken is a bad one. */
#define LOOKS 4000u
#define LOOKS_AN_EVENT 16u
#define BAD_TURN 8u     /* good ones make up for it */
#define BAD_TURNS 64u   /* from here on alone, */
#define ALONE 2000u     /* for so many turns at first */
#define MAX_ALONE (64u * ALONE)

/* A turn is no longer than that, however long cables are: in between things are done from outside, and
 * what lies in channels is taken in. */
#define LONGEST_TURN 10000u

/* Who takes more blocks than it gives back does so again and again. After so many turns those that
 * work together change places, that no store grows for ever while another runs dry. */
#define SAME_STORE 1024u

struct frame {
    struct frame *next;
    ns_t next_arrives; /* so that whoever waits for the next need not touch it yet */
    uint32_t stored, wire;
    uint8_t class; /* of its block */
    uint8_t kind;  /* of frame: books.h */
    uint8_t bytes[];
};

/* Blocks that a thread takes and gives back: one set of warm ones, whatever it simulates. */
struct store {
    _Alignas(128) struct blocks frames;
    struct pkt_pool pool;
};

/* Who simulates parts, one after the other: the caller's thread, and others where they are handed
 * some. */
struct worker {
    _Alignas(128) atomic_uint taken; /* parts of its share that somebody has begun with */
    uint32_t end;                    /* of its share */
    uint64_t count, ended;           /* events, transfers: in this turn */
    ns_t first, last_end;            /* what is next in the parts it did; when a transfer ended */
    struct net_pause *pauses;        /* of this turn */
    uint32_t n_pauses, n_kept, pauses_room;
    struct mail *mails; /* by rank: the words and frames for others */
};

/* Some of the nodes, and the channels that lead to them: what is simulated at a stretch, as long as a
 * turn is. What it sends to other parts lies in the channels until the next one. */
struct part {
    _Alignas(128) struct evq queue;
    struct net *net;
    struct store *store;   /* of who simulates it, or did last */
    struct worker *worker; /* who that is */
    struct node *switches; /* its own */
    uint64_t delivered, early, ended;
    ns_t acted, last_end; /* when anything happened, when a transfer ended: last */
    ns_t letter; /* when the first frame arrives that it sent to others in this turn */
    uint32_t number;
};

/* What tells whether a part has anything to do in a turn, side by side for all of them. */
struct due {
    ns_t next; /* its first event, when its last turn was over */
    struct inbox {
        struct channel **from; /* those with frames for it, in no order */
        atomic_uint n;
    } inboxes[2]; /* by turn */
    uint32_t senders; /* channels that lead to it */
};

/* What ranks tell each other between turns, at the beginning of each mail; frames follow. */
struct word {
    ns_t first;           /* what is next */
    ns_t last_end, acted; /* as in a part: the last of all */
    uint64_t count, ended; /* events and transfers since the word before */
    uint64_t has_failed;   /* a queue pair, and nobody has asked so far */
};

struct letter { /* before a frame, whose next_arrives is when it does itself */
    uint32_t channel;
    uint32_t bytes; /* of the frame with its head */
};

struct node {
    struct evq_event wake; /* first: an event is its node */
    struct net *net;
    struct part *part;
    struct sw *sw;        /* or */
    struct node *next;         /* switch of the part */
    struct pkt_pool *own_pool; /* the switch's, while it shares ours */
    struct script script; /* a host */
    struct channel *out[EP_PORTS]; /* a host's, by port */
    struct llr *links[EP_PORTS];   /* the same: NULL where a link loses what it loses, */
    struct cable *cables[EP_PORTS]; /* or what spoils frames on their way to there */
    bool tries_again;              /* whether it has any */
    bool is_halted;       /* a host */
    bool is_elsewhere;    /* another rank simulates it */
    uint32_t number, ports; /* ports: one more than the highest */
};

struct frames { /* in order */
    struct frame *head, *tail;
    ns_t arrives; /* the first */
};

/* There are thousands, and a turn needs most of them: what a frame touches shares cache lines, three at
 * either end. Counts are placed so that those of classes 3 to 6, of data and answers, do. */
struct channel {
    /* Of the part that receives: */
    _Alignas(64) struct evq_event arrival; /* first */
    struct frames frames;
    struct node *to;

    struct pcap *pcap;
    uint32_t to_port;
    bool is_down;
    struct port_count left[CLASSES], dropped[NET_WAYS_TO_LOSE][CLASSES];
    uint64_t lost;
    uint32_t number;
    struct net_sample noted; /* the last note of it */
    uint64_t storms;         /* the same: how often its queues were let go */

    /* Of the part that sends: */
    _Alignas(64) struct part *sends;
    struct part *receives; /* NULL: another rank's */
    struct sw_port *port; /* that sends into it, if that is a switch's */
    ns_t last;            /* when the last frame arrives */
    struct net_channel_report counts;

    struct frames letters[2]; /* sent in this turn or the last, if another part receives */
    bps_t rate;
    ns_t delay;

    struct node *from;
    uint32_t from_port, overhead;
    struct port_count in[CLASSES];
    struct net *net;
};
static_assert(sizeof(void *) < 8 || (offsetof(struct channel, left[3]) % 64 == 0 &&
                                    offsetof(struct channel, in[3]) % 64 == 0),
              "the counts of data and of answers are on one line");

struct net {
    struct part **parts;
    struct due *dues; /* by part */
    struct worker **workers;
    struct store **stores;
    uint32_t n_parts, n_workers;
    struct ranks *ranks; /* NULL: there is one alone */
    uint32_t *bounds;    /* rank r's parts are from bounds[r] to bounds[r + 1] */
    uint32_t begin, end; /* our own */
    struct mail *arrived; /* by rank */
    ns_t first;           /* of all ranks, as of the last word */
    ns_t acted;
    atomic_bool has_starved; /* memory was out for what ranks send */
    unsigned turn; /* 0, 1, 0, ... */
    uint64_t turns;
    ns_t now;     /* between two turns */
    ns_t stretch; /* of time that is a turn: at most the shortest delay, sooner nobody hears of another */
    ns_t until;   /* the end of this turn */
    ns_t last_end; /* when a transfer ended last; once none is open that is the end of all */
    uint64_t last_count; /* events of the last one: */
    uint64_t worth;      /* from so many on the next is handed to others */
    uint32_t bad, alone, next_alone;
    struct team *team;
    atomic_bool has_failed; /* a queue pair, since somebody asked */
    uint64_t looks;
    struct node **nodes;
    struct channel **channels;
    uint32_t n_nodes, n_channels;
    uint64_t open;
    ns_t next_look; /* EVQ_NEVER: none */
    ns_t sample_interval;
    bool gave_up;
    struct net_watch watch;
    struct net_sample *samples;
    uint64_t n_samples, most_samples;
    struct net_stock *stocks, *stocks_now;
    uint64_t n_stocks, stock_stride, moment; /* every so manieth moment has a stock */
    struct net_pause *pauses;
    uint64_t n_pauses;
    struct net_share *shares; /* the caller's; NULL: nobody asks */
    uint64_t n_shares, shares_room;
};

/* Frames */

SW_INLINE struct frame *frame_new(struct part *part, uint32_t stored)
{
    uint8_t class;
    struct frame *frame = blocks_take(&part->store->frames, sizeof *frame + stored, &class);
    if (SW_UNLIKELY(!frame))
        return NULL;
    frame->class = class;
    frame->next = NULL;
    return frame;
}

static void frame_release(struct part *part, struct frame *frame)
{
    blocks_give(&part->store->frames, frame, frame->class);
}

/* Behind those that are there; whether there are none. */
static bool append(struct frames *frames, const struct frames *more)
{
    if (!frames->head) {
        *frames = *more;
        return true;
    }
    frames->tail->next = more->head;
    frames->tail->next_arrives = more->arrives;
    frames->tail = more->tail;
    return false;
}

/* The first, which is there; the next will soon be asked for. */
static struct frame *take_first(struct frames *frames)
{
    struct frame *frame = frames->head;
    frames->head = frame->next;
    frames->arrives = frame->next_arrives;
    __builtin_prefetch(frames->head);
    __builtin_prefetch((const uint8_t *)frames->head + 64);
    return frame;
}

/* Channels */

static void expect_first(struct channel *channel)
{
    evq_schedule(&channel->to->part->queue, &channel->arrival, channel->frames.arrives, ARRIVALS);
}

/* To another part, which takes it in when its next turn begins. */
static void post(struct channel *channel, const struct frames *frame)
{
    struct part *part = channel->sends;
    struct net *net = part->net;
    if (channel->receives && append(&channel->letters[net->turn], frame)) {
        struct inbox *inbox = &net->dues[channel->receives->number].inboxes[net->turn];
        inbox->from[atomic_fetch_add_explicit(&inbox->n, 1, memory_order_relaxed)] = channel;
    }
    if (frame->arrives < part->letter)
        part->letter = frame->arrives;
    part->early += frame->arrives <= net->until; /* it was promised that there are none */
}

/* Ranks */

static bool is_ours(const struct node *node) { return !node->is_elsewhere; }

static uint32_t rank_of(const struct net *net, const struct part *part)
{
    uint32_t rank = 0;
    while (part->number >= net->bounds[rank + 1])
        rank++;
    return rank;
}

/* The place of a frame in what another rank will be sent. */
static struct frame *frame_abroad(const struct channel *channel, uint32_t stored, ns_t arrives)
{
    struct part *part = channel->sends;
    struct mail *mail = &part->worker->mails[rank_of(part->net, channel->to->part)];
    uint32_t bytes = (uint32_t)sizeof(struct frame) + stored;
    struct letter *letter = mail_more(mail, sizeof *letter + bytes);
    if (SW_UNLIKELY(!letter)) {
        atomic_store_explicit(&part->net->has_starved, true, memory_order_relaxed);
        return NULL;
    }
    *letter = (struct letter){channel->number, bytes};
    struct frame *frame = (struct frame *)(letter + 1);
    *frame = (struct frame){.next_arrives = arrives};
    return frame;
}

/* One that another rank has sent. */
static bool take_letter(struct net *net, const struct letter *letter)
{
    const struct frame *sent = (const struct frame *)(letter + 1);
    struct channel *channel = net->channels[letter->channel];
    struct part *part = channel->to->part;
    struct frame *frame = frame_new(part, sent->stored);
    if (!frame)
        return false;
    frame->stored = sent->stored;
    frame->wire = sent->wire;
    frame->kind = sent->kind;
    memcpy(frame->bytes, sent->bytes, sent->stored);
    struct frames one = {frame, frame, sent->next_arrives};
    if (append(&channel->frames, &one))
        expect_first(channel);
    struct due *due = &net->dues[part->number];
    due->next = one.arrives < due->next ? one.arrives : due->next;
    return true;
}

static void add_word(struct word *word, const struct word *other)
{
    word->first = other->first < word->first ? other->first : word->first;
    word->last_end = other->last_end > word->last_end ? other->last_end : word->last_end;
    word->acted = other->acted > word->acted ? other->acted : word->acted;
    word->count += other->count;
    word->ended += other->ended;
    word->has_failed |= other->has_failed;
}

/* The mail for a rank: all threads' are one. */
static bool join_mails(struct net *net, uint32_t rank)
{
    struct mail *whole = &net->workers[0]->mails[rank];
    for (uint32_t i = 1; i < net->n_workers; i++) {
        struct mail *more = &net->workers[i]->mails[rank];
        if (!more->used)
            continue;
        void *place = mail_more(whole, more->used);
        if (!place)
            return false;
        memcpy(place, more->bytes, more->used);
        more->used = 0;
    }
    return true;
}

static bool take_mail_of(struct net *net, const struct mail *mail, struct word *word)
{
    add_word(word, (const void *)mail->bytes);
    for (uint64_t at = sizeof *word; at < mail->used;) {
        const struct letter *letter = (const void *)(mail->bytes + at);
        if (!take_letter(net, letter))
            return false;
        at += (sizeof *letter + letter->bytes + 7) / 8 * 8;
    }
    return true;
}

/* Tell others what this rank knows, with the frames for them; then all know the same. */
static void confer(struct net *net, struct word *word)
{
    if (!net->ranks)
        return;
    struct mail *mails = net->workers[0]->mails;
    uint32_t own = ranks_number(net->ranks), size = ranks_size(net->ranks);
    const struct word said = *word;
    bool is_whole = true;
    for (uint32_t rank = 0; rank < size; rank++) {
        if (rank == own)
            continue;
        memcpy(mails[rank].bytes, &said, sizeof said);
        is_whole = is_whole && join_mails(net, rank);
    }
    is_whole = ranks_exchange(net->ranks, mails, net->arrived) && is_whole;
    for (uint32_t rank = 0; rank < size && is_whole; rank++) {
        mails[rank].used = sizeof said;
        is_whole = rank == own || take_mail_of(net, &net->arrived[rank], word);
    }
    if (!is_whole)
        atomic_store_explicit(&net->has_starved, true, memory_order_relaxed);
    net->first = word->first;
    net->acted = word->acted;
    if (word->has_failed)
        atomic_store_explicit(&net->has_failed, true, memory_order_relaxed);
}

static int by_number(const void *a, const void *b)
{
    const uint32_t *one = a, *other = b; /* behind the time */
    if (one[2] != other[2])
        return one[2] < other[2] ? -1 : 1;
    return one[3] < other[3] ? -1 : one[3] > other[3];
}

/* All ranks' notes of this moment, in the order of what they are of; how many. */
static uint64_t pooled(struct net *net, void *notes, uint64_t n, size_t size)
{
    if (!net->ranks)
        return n;
    bool is_whole = ranks_tell(net->ranks, notes, n * size, ranks_size(net->ranks));
    for (uint32_t rank = 0; is_whole && rank < ranks_size(net->ranks); rank++) {
        uint64_t bytes = 0;
        const uint8_t *said = ranks_said(net->ranks, rank, &bytes);
        if (bytes)
            memcpy((uint8_t *)notes + n * size, said, bytes);
        n += bytes / size;
    }
    if (!is_whole)
        atomic_store_explicit(&net->has_starved, true, memory_order_relaxed);
    qsort(notes, n, size, by_number);
    return n;
}

static bool channel_put(struct channel *channel, const uint8_t *bytes, uint32_t stored,
                        uint32_t wire, ns_t arrives)
{
    struct part *part = channel->sends;
    if (SW_UNLIKELY(arrives < part->queue.now))
        return false; /* its arrival could never happen, nor that of anything behind it */
    if (arrives < channel->last)
        arrives = channel->last; /* a cable keeps order */
    struct frame *frame = SW_UNLIKELY(!channel->receives) ? frame_abroad(channel, stored, arrives)
                                                          : frame_new(part, stored);
    if (!frame)
        return false;
    channel->counts.packets++;
    channel->counts.bytes += wire;
    channel->last = arrives;
    frame->stored = stored;
    frame->wire = wire;
    memcpy(frame->bytes, bytes, stored);
    frame->kind = (uint8_t)frame_class(bytes, stored);
    count_bytes(&channel->in[frame->kind], wire);
    struct frames one = {frame, frame, arrives};
    if (channel->receives != part)
        post(channel, &one);
    else if (append(&channel->frames, &one))
        expect_first(channel);
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

static void switch_will_send(const void *driver)
{
    const struct channel *channel = driver;
    __builtin_prefetch(&channel->sends);
    __builtin_prefetch(channel->letters);
    __builtin_prefetch(&channel->in[3]);
}

static void switch_closes(void *driver) { (void)driver; }

static const struct port_ops SWITCH_PORT = {
    .send = switch_sends,
    .send_cut = switch_sends_cut,
    .fetch = switch_will_send,
    .close = switch_closes,
};

/* When something is there that a host began to send, so many bytes long. */
static ns_t host_arrival(const struct channel *channel, uint32_t wire, ns_t at)
{
    ps_t lasts = (ps_t)(wire + channel->overhead) * 8 * 1000000000000u / channel->rate;
    return at + (lasts + 999) / 1000 + channel->delay;
}

/* The same by a link that tries again: false if that can keep no more for now. */
static bool link_sends(struct llr *link, struct channel *channel, const uint8_t *frame,
                       uint32_t stored, uint32_t wire, ns_t at)
{
    const struct llr_frame *kept =
        llr_is_full(link) ? NULL
                          : llr_find(link, llr_number(link, frame, stored, wire - stored, at));
    if (!kept)
        return false;
    llr_handed(link, kept, channel_put(channel, kept->bytes, kept->len, kept->len + kept->absent,
                                       host_arrival(channel, wire, at)));
    return true;
}

static bool host_sends(void *ctx, const uint8_t *frame, uint32_t stored, uint32_t wire,
                       uint8_t port, uint8_t priority, ns_t at)
{
    (void)priority;
    const struct node *host = ctx;
    struct channel *channel = host->out[port];
    if (SW_UNLIKELY(host->links[port] && !channel->is_down))
        return link_sends(host->links[port], channel, frame, stored, wire, at);
    return channel_put(channel, frame, stored, wire, host_arrival(channel, wire, at));
}

/* What a host's link itself has to send leaves before any frame of its adapter. */
static void link_service(struct llr *link, struct channel *channel, struct ep *ep, ns_t now)
{
    uint8_t port = (uint8_t)channel->from_port;
    const struct llr_frame *frame;
    ns_t since;
    while (ep_port_free(ep, port) <= now && (frame = llr_next(link, now, &since)) != NULL) {
        uint32_t bytes = frame->len + frame->absent;
        bool is_answer = bytes == LLR_ANSWER_BYTES && !frame->absent;
        uint32_t wire = bytes - (is_answer ? 0 : LLR_TAG);
        ns_t arrives = host_arrival(channel, wire, ep_occupy(ep, port, wire, now));
        if (channel_put(channel, frame->bytes, frame->len, bytes, arrives))
            llr_added(link, frame->bytes, frame->len, frame->absent);
    }
}

/* Links first, then the adapter; when to do so again. */
static ns_t host_service(const struct node *host, ns_t now)
{
    struct ep *ep = plan_endpoint(host->script.plan);
    for (uint8_t port = 0; port < EP_PORTS; port++)
        if (host->links[port] && !host->out[port]->is_down)
            link_service(host->links[port], host->out[port], ep, now);
    ns_t wake = plan_service(host->script.plan, now);
    for (uint8_t port = 0; port < EP_PORTS; port++) {
        if (!host->links[port] || host->out[port]->is_down)
            continue;
        ns_t due = llr_due(host->links[port]), free = ep_port_free(ep, port);
        wake = ns_least(wake, due > free ? due : free);
    }
    return wake;
}

/* A frame came out of the cable to a host whose link tries again. */
static void link_takes(struct node *host, uint8_t port, struct frame *frame, ns_t now)
{
    struct llr *link = host->links[port];
    struct plan *plan = host->script.plan;
    struct llr_frame kept;
    uint32_t len = frame->stored, absent = frame->wire - frame->stored;
    if (cable_take(host->cables[port], frame->bytes, len, absent, now) == CABLE_LOSES) {
        llr_spoilt(link, now);
        return;
    }
    if (llr_take(link, frame->bytes, &len, absent, now) == LLR_STAYS)
        return;
    plan_receive(plan, port, frame->bytes, len, len + absent, now);
    while (llr_give(link, &kept)) {
        plan_receive(plan, port, kept.bytes, kept.len, kept.len + kept.absent, now);
        free(kept.bytes);
    }
}

/* Nodes */

static void node_service(struct node *node, ns_t now)
{
    if (SW_UNLIKELY(node->is_halted || !is_ours(node)))
        return;
    ns_t wake = node->sw                        ? sw_service(node->sw, now)
                : SW_UNLIKELY(node->tries_again) ? host_service(node, now)
                                                : plan_service(node->script.plan, now);
    if (wake == SW_NEVER)
        evq_cancel(&node->part->queue, &node->wake);
    else
        evq_schedule(&node->part->queue, &node->wake, wake, WAKES);
}

static void node_woken(struct evq_event *event, ns_t now)
{
    struct node *node = (struct node *)event;
    const struct sw *sw = node->sw;
    uint64_t sent = sw ? sw->sent : 0, held = sw ? sw->held : 0;
    node_service(node, now);
    /* A switch that only read a clock of its program's has found all as it was. */
    if (!sw || sw->sent != sent || sw->held != held)
        node->part->acted = now;
}

static void note_pause(struct part *part, const struct channel *channel, uint16_t priority,
                       enum net_pause_kind kind, ns_t now)
{
    const struct net *net = part->net;
    struct worker *worker = part->worker;
    if (!net->pauses || net->n_pauses == NET_MAX_PAUSES)
        return;
    if (worker->n_pauses == worker->pauses_room) {
        uint32_t room = worker->pauses_room ? 2 * worker->pauses_room : 64;
        struct net_pause *grown = realloc(worker->pauses, room * sizeof *grown);
        if (!grown)
            return;
        worker->pauses = grown;
        worker->pauses_room = room;
    }
    worker->pauses[worker->n_pauses++] = (struct net_pause){
        .at = now, .channel = channel->number, .priority = priority, .kind = kind};
}

/* What a frame says of pauses, if it is one that does. */
static void note_frame(struct part *part, const struct channel *channel, const struct frame *frame,
                       ns_t now)
{
    const uint8_t *bytes = frame->bytes;
    if (frame->stored < PAUSE_TIMES + 16 || bytes[14] != 0x01 || bytes[15] != 0x01)
        return;
    for (unsigned left = bytes[PAUSE_CLASS_ENABLE + 1]; left; left &= left - 1) {
        unsigned priority = (unsigned)__builtin_ctz(left);
        const uint8_t *quanta = bytes + PAUSE_TIMES + 2 * priority;
        note_pause(part, channel, (uint16_t)priority, quanta[0] | quanta[1] ? NET_XOFF : NET_XON, now);
    }
}

static bool is_mac_control(const struct frame *frame)
{
    return frame->bytes[12] == 0x88 && frame->bytes[13] == 0x08;
}

static void channel_arrival(struct evq_event *event, ns_t now)
{
    struct channel *channel = (struct channel *)event;
    struct node *to = channel->to;
    struct part *part = to->part;
    struct frame *frame = take_first(&channel->frames);
    part->acted = now;
    if (channel->frames.head)
        expect_first(channel);
    /* Pauses are the adapter's business, whatever its host does. */
    if (SW_UNLIKELY(channel->is_down || (to->is_halted && !is_mac_control(frame)))) {
        channel->lost++;
        count_bytes(&channel->dropped[channel->is_down ? NET_LINK_CUT : NET_HOST_HALTED][frame->kind],
                    frame->wire);
        frame_release(part, frame);
        return;
    }
    part->delivered++;
    count_bytes(&channel->left[frame->kind], frame->wire);
    if (SW_UNLIKELY(channel->pcap != NULL))
        pcap_write(channel->pcap, frame->bytes, frame->stored, frame->wire, now);
    if (SW_UNLIKELY(is_mac_control(frame)))
        note_frame(part, channel, frame, now);
    if (to->sw)
        sw_receive_cut(to->sw, channel->to_port, frame->bytes, frame->stored,
                       frame->wire - frame->stored, now);
    else if (SW_UNLIKELY(to->tries_again && to->links[channel->to_port]))
        link_takes(to, (uint8_t)channel->to_port, frame, now);
    else if (to->script.plan)
        plan_receive(to->script.plan, (uint8_t)channel->to_port, frame->bytes, frame->stored,
                     frame->wire, now);
    frame_release(part, frame);
    if (to->sw || to->script.plan)
        node_service(to, now);
}

static void transfer_ended(void *ctx, const struct transfer *transfer)
{
    (void)transfer;
    struct part *part = ((struct node *)ctx)->part;
    ns_t clock = part->net->now, now = part->queue.now; /* the later: this may be done from outside */
    part->ended++;
    part->last_end = clock > now ? clock : now;
}

static void pair_failed(void *ctx, const struct qp *qp, enum ep_error error, ns_t at)
{
    (void)qp, (void)error, (void)at;
    struct net *net = ((struct node *)ctx)->net;
    atomic_store_explicit(&net->has_failed, true, memory_order_relaxed);
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
                         struct net_stock *found)
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
    if (!net->stocks || !net->stocks_now || net->moment++ % net->stock_stride)
        return;
    struct net_stock *found = net->stocks_now;
    uint64_t n = 0, count;
    for (uint32_t i = 0; i < net->n_nodes; i++)
        if (net->nodes[i]->sw && is_ours(net->nodes[i]))
            n += stock_of(net, net->nodes[i], now, found + n);
    n = pooled(net, found, n, sizeof *found);
    for (; n; n -= count, found += count) { /* a switch */
        for (count = 1; count < n && found[count].node == found->node;)
            count++;
        if (net->n_stocks + count > net->most_samples)
            thin_stocks(net);
        if (net->n_stocks + count > net->most_samples)
            continue;
        memcpy(net->stocks + net->n_stocks, found, count * sizeof *found);
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
        note_pause(net->parts[0], channel, 0, NET_STUCK, now);
    channel->storms = sum;
}

static uint64_t dropped_packets(const struct sw *sw, uint32_t counter)
{
    uint64_t packets = 0;
    for (uint64_t reason = 0; reason < sw->program->counters[counter].size; reason++)
        if (reason != IN_SUM)
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
        if (!plan)
            return 0;
        struct ep *ep = plan_endpoint(plan);
        const struct ep_counters *counters = ep_counters(ep, now);
        struct ep_port_counters its = ep_port_counters(ep, (uint8_t)channel->from_port);
        for (unsigned left = watch->classes; left; left &= left - 1)
            sum += its.paused_ns[__builtin_ctz(left)];
        return sum + counters->credit_waited_ns; /* which is all ports' */
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

/* The first thing that happens here. */
static ns_t first_here(const struct net *net)
{
    ns_t first = EVQ_NEVER;
    for (uint32_t i = 0; i < net->n_parts; i++) {
        const struct part *part = net->parts[i];
        ns_t next = evq_next(&part->queue);
        next = part->letter < next ? part->letter : next;
        first = next < first ? next : first;
    }
    return first;
}

/* The same anywhere. */
static ns_t first_event(const struct net *net) { return net->ranks ? net->first : first_here(net); }

/* When to look again. Where there was nothing to note nothing changes before the next event, however
 * long that takes: looks that would find nothing are left out. */
static ns_t next_look(const struct net *net, ns_t now, bool was_noted)
{
    ns_t next = first_event(net), interval = net->sample_interval;
    if (next == EVQ_NEVER)
        return EVQ_NEVER; /* nothing is to come */
    if (was_noted || next <= now + interval)
        return now + interval;
    return now + (next - now + interval - 1) / interval * interval;
}

/* By time, and at one instant by channel: they are nearly so. */
static void sort_pauses(struct net_pause *notes, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        struct net_pause note = notes[i];
        uint32_t at = i;
        for (; at > 0 && (notes[at - 1].at > note.at ||
                          (notes[at - 1].at == note.at && notes[at - 1].channel > note.channel));
             at--)
            notes[at] = notes[at - 1];
        notes[at] = note;
    }
}

/* Take over what was noted, in an order that tells nothing of who noted it. */
static void keep_pauses(struct net *net)
{
    struct worker *first;
    for (uint32_t i = 0; i < net->n_workers; i++)
        sort_pauses(net->workers[i]->pauses, net->workers[i]->n_pauses);
    do {
        const struct net_pause *least = NULL;
        for (uint32_t i = 0; i < net->n_workers; i++) {
            struct worker *worker = net->workers[i];
            const struct net_pause *note = worker->pauses + worker->n_kept;
            if (worker->n_kept == worker->n_pauses)
                continue;
            if (!least || note->at < least->at ||
                (note->at == least->at && note->channel < least->channel)) {
                least = note;
                first = worker;
            }
        }
        if (!least)
            break;
        first->n_kept++;
        if (net->n_pauses < NET_MAX_PAUSES && (net->open || least->at <= net->last_end))
            net->pauses[net->n_pauses++] = *least;
    } while (true);
    for (uint32_t i = 0; i < net->n_workers; i++)
        net->workers[i]->n_pauses = net->workers[i]->n_kept = 0;
}

static void sample(struct net *net, ns_t now)
{
    if (net->n_samples + net->n_channels > net->most_samples)
        thin_samples(net);
    struct net_sample *found = net->samples + net->n_samples;
    uint64_t n = 0, room = net->most_samples - net->n_samples;
    for (uint32_t i = 0; i < net->n_channels && n < room; i++) {
        struct channel *channel = net->channels[i];
        if (!is_ours(channel->from))
            continue;
        struct net_sample note = look_at(channel, i, now), *noted = &channel->noted;
        if (channel->port && net->watch.storms != NET_NOWHERE)
            note_storms(net, channel, now);
        if (!note.queue_bytes && note.bytes == noted->bytes && note.paused == noted->paused)
            continue;
        found[n++] = note;
    }
    n = pooled(net, found, n, sizeof *found);
    n = n < room ? n : room;
    for (uint64_t i = 0; i < n; i++)
        net->channels[found[i].channel]->noted = found[i];
    net->n_samples += n;
    note_stocks(net, now);
    keep_pauses(net);
    net->looks++;
    net->next_look = next_look(net, now, n > 0);
}

void net_sample(struct net *net, const struct net_watch *watch, ns_t interval, uint32_t most)
{
    net->watch = *watch;
    if (!interval)
        return;
    /* All channels' notes may come from other ranks before those are cut off that have no room. */
    net->samples = malloc((most + net->n_channels) * sizeof *net->samples);
    net->most_samples = net->samples ? most : 0;
    net->sample_interval = interval;
    net->pauses = malloc(NET_MAX_PAUSES * sizeof *net->pauses);
    net->stock_stride = 1;
    if (watch->in_used != NET_NOWHERE) {
        net->stocks = malloc(most * sizeof *net->stocks);
        net->stocks_now = malloc(net->n_nodes * SW_QUEUES * sizeof *net->stocks_now);
    }
    if (net->samples)
        net->next_look = net->now + interval;
}

ns_t net_next(const struct net *net)
{
    ns_t next = first_event(net);
    return next < net->next_look ? next : net->next_look;
}

void net_look(const struct net *net, struct net_sample *notes)
{
    for (uint32_t i = 0; i < net->n_channels; i++)
        notes[i] = look_at(net->channels[i], i, net->now);
}

void net_snapshot(const struct net *net, struct net_snapshot *snapshot)
{
    *snapshot = (struct net_snapshot){0};
    for (uint32_t i = 0; i < net->n_channels; i++) {
        const struct channel *channel = net->channels[i];
        if (!channel->to->sw)
            snapshot->into_hosts += channel->counts.bytes;
        if (!channel->port)
            continue;
        const struct sw *sw = channel->from->sw;
        uint64_t queue = queue_bytes(channel);
        if (queue > snapshot->queue_bytes) {
            snapshot->queue_bytes = queue;
            snapshot->channel = i;
        }
        bool held = false;
        for (unsigned left = net->watch.classes; left; left &= left - 1) {
            unsigned cell = channel->from_port * SW_QUEUES + (unsigned)__builtin_ctz(left);
            held = held || tm_gate_time(&sw->shared[SW_QUEUE_GATE], cell) > net->now;
        }
        snapshot->paused += held;
        snapshot->marked += sw->state.counters[net->watch.marked][channel->from_port].packets;
    }
    for (uint32_t i = 0; i < net->n_nodes; i++)
        if (net->nodes[i]->sw)
            snapshot->dropped += dropped_packets(net->nodes[i]->sw, net->watch.dropped);
}

static void count_frames(struct port_count held[CLASSES], const struct frames *frames)
{
    for (const struct frame *frame = frames->head; frame; frame = frame->next)
        count_bytes(&held[frame->kind], frame->wire);
}

static bool lacks_credit(const struct tm_port *port, unsigned priority)
{
    const struct tm_schedule *schedule = port->schedule;
    return schedule && schedule->credited >> priority & 1 &&
           schedule->shares[priority].credit.since != SW_NEVER;
}

/* Waits: they are counted where there is no more room for them. */
struct wait_list {
    struct net_wait *waits;
    uint32_t room, n;
};

static void add_wait(struct wait_list *list, const struct net_wait *wait)
{
    if (list->n++ < list->room)
        list->waits[list->n - 1] = *wait;
}

/* By the port that packets of a queue came by. */
static void add_queue(const struct net *net, const struct channel *channel, unsigned priority,
                      struct wait_list *list)
{
    const struct tm_port *port = &channel->port->tm;
    unsigned queue = channel->from_port * SW_QUEUES + priority;
    ns_t until = tm_gate_time(&channel->from->sw->shared[SW_QUEUE_GATE], queue);
    bool lacks = lacks_credit(port, priority);
    until = lacks ? NS_NEVER : until > net->now ? until : 0;
    struct net_wait waits[SW_PORTS + 1] = {{0}}; /* the last: what was made here */
    for (const struct pkt *p = port->queues[priority].head; p; p = p->next) {
        uint32_t came = p->ingress_port < SW_PORTS ? p->ingress_port : SW_PORTS;
        if (!waits[came].packets++)
            waits[came].since = lacks ? port->schedule->shares[priority].credit.since : p->enq_ns;
        waits[came].bytes += p->queued_len;
    }
    for (uint32_t came = 0; came <= SW_PORTS; came++) {
        if (!waits[came].packets)
            continue;
        waits[came].until = until;
        waits[came].channel = channel->number;
        waits[came].came = came < SW_PORTS ? came : NET_NOWHERE;
        waits[came].priority = priority;
        add_wait(list, &waits[came]);
    }
}

/* By class, what is under way in a channel. */
static void add_frames(const struct channel *channel, struct wait_list *list)
{
    struct port_count held[CLASSES] = {{0, 0}};
    count_frames(held, &channel->frames);
    for (unsigned turn = 0; turn < 2; turn++)
        count_frames(held, &channel->letters[turn]);
    for (uint32_t priority = 0; priority < SW_QUEUES; priority++)
        if (held[priority].packets)
            add_wait(list, &(struct net_wait){.channel = channel->number,
                                              .came = NET_NOWHERE,
                                              .packets = (uint32_t)held[priority].packets,
                                              .bytes = held[priority].bytes,
                                              .priority = priority});
}

static void add_host_wait(const struct net *net, const struct channel *channel, struct wait_list *list)
{
    const struct plan *plan = channel->from->script.plan;
    for (uint8_t priority = 0; plan && priority < SW_QUEUES; priority++) {
        const struct ep *ep = plan_endpoint((struct plan *)plan);
        struct net_wait wait = {.channel = channel->number, .came = NET_NOWHERE, .priority = priority};
        wait.until = ep_held_until(ep, (uint8_t)channel->from_port, priority, net->now);
        wait.since = ep_credit_since(ep, priority, net->now);
        if (wait.until)
            add_wait(list, &wait);
    }
}

uint32_t net_waits(const struct net *net, struct net_wait *waits, uint32_t room)
{
    struct wait_list list = {waits, room, 0};
    for (uint32_t i = 0; i < net->n_channels; i++) {
        const struct channel *channel = net->channels[i];
        add_frames(channel, &list);
        if (!is_ours(channel->from))
            continue;
        if (!channel->port) {
            add_host_wait(net, channel, &list);
            continue;
        }
        for (unsigned left = channel->port->tm.backlog; left; left &= left - 1)
            add_queue(net, channel, (unsigned)__builtin_ctz(left), &list);
    }
    return list.n;
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

/* Room for one more in a list of `used`. */
static bool make_room(void *list, uint32_t used, size_t size)
{
    if (used & (used - 1)) /* room is always a power of two */
        return true;
    void *grown = realloc(*(void **)list, (used ? used * 2 : 1) * size);
    if (grown)
        *(void **)list = grown;
    return grown != NULL;
}

static bool add_part(struct net *net, uint64_t seed)
{
    struct part *part = NULL;
    if (!make_room(&net->parts, net->n_parts, sizeof *net->parts) ||
        !make_room(&net->dues, net->n_parts, sizeof *net->dues) ||
        posix_memalign((void **)&part, _Alignof(struct part), sizeof *part))
        return false;
    *part = (struct part){.net = net,
                          .number = net->n_parts,
                          .store = net->stores[0],
                          .worker = net->workers[0],
                          .letter = EVQ_NEVER};
    if (!evq_init(&part->queue, seed)) {
        free(part);
        return false;
    }
    net->dues[net->n_parts] = (struct due){.next = EVQ_NEVER};
    net->parts[net->n_parts++] = part;
    return true;
}

static bool add_worker(struct net *net)
{
    struct worker *worker = NULL;
    struct store *store = NULL;
    if (!make_room(&net->workers, net->n_workers, sizeof *net->workers) ||
        !make_room(&net->stores, net->n_workers, sizeof *net->stores) ||
        posix_memalign((void **)&worker, _Alignof(struct worker), sizeof *worker) ||
        posix_memalign((void **)&store, _Alignof(struct store), sizeof *store)) {
        free(worker);
        return false;
    }
    *worker = (struct worker){.first = EVQ_NEVER};
    blocks_init(&store->frames, BLOCKS_LINE_BITS);
    pkt_pool_init(&store->pool);
    net->stores[net->n_workers] = store;
    net->workers[net->n_workers++] = worker;
    return true;
}

static bool divide(struct net *net, uint64_t seed, uint32_t parts, uint32_t threads)
{
    do
        if (!add_worker(net))
            return false;
    while (net->n_workers < threads && net->n_workers < parts);
    do
        if (!add_part(net, seed))
            return false;
    while (net->n_parts < parts);
    net->end = net->n_parts;
    return true;
}

struct net *net_new(uint64_t seed, uint32_t parts, uint32_t threads, uint64_t worth)
{
    struct net *net = calloc(1, sizeof *net);
    if (!net)
        return NULL;
    net->next_look = EVQ_NEVER;
    net->stretch = LONGEST_TURN;
    net->worth = worth;
    if (divide(net, seed, parts, threads))
        return net;
    net_free(net);
    return NULL;
}

static struct mail *mails_for(uint32_t ranks, uint64_t bytes)
{
    struct mail *mails = calloc(ranks, sizeof *mails);
    for (uint32_t rank = 0; mails && rank < ranks; rank++)
        if (bytes && !mail_more(&mails[rank], bytes))
            return NULL;
    return mails;
}

bool net_join(struct net *net, struct ranks *ranks, const uint32_t *bounds)
{
    uint32_t own = ranks_number(ranks), size = ranks_size(ranks);
    for (uint32_t i = 0; i < net->n_workers; i++)
        if (!(net->workers[i]->mails = mails_for(size, i ? 0 : sizeof(struct word))))
            return false;
    net->arrived = mails_for(size, 0);
    net->bounds = calloc(size + 1, sizeof *net->bounds);
    if (!net->arrived || !net->bounds)
        return false;
    memcpy(net->bounds, bounds, (size + 1) * sizeof *bounds);
    net->begin = bounds[own];
    net->end = bounds[own + 1];
    for (uint32_t i = 0; i < net->n_nodes; i++) {
        uint32_t part = net->nodes[i]->part->number;
        net->nodes[i]->is_elsewhere = part < net->begin || part >= net->end;
    }
    for (uint32_t i = 0; i < net->n_channels; i++)
        if (!is_ours(net->channels[i]->to))
            net->channels[i]->receives = NULL;
    net->ranks = ranks;
    return true;
}

/* A switch's part has a list of it. */
static void own(struct node *node)
{
    node->next = node->part->switches;
    node->part->switches = node;
}

void net_place(struct net *net, uint32_t number, uint32_t part)
{
    struct node *node = net->nodes[number], **its = &node->part->switches;
    while (*its && *its != node)
        its = &(*its)->next;
    if (*its)
        *its = node->next;
    node->part = net->parts[part];
    if (node->sw)
        own(node);
}

static void mails_free(struct mail *mails, uint32_t ranks)
{
    for (uint32_t rank = 0; mails && rank < ranks; rank++)
        free(mails[rank].bytes);
    free(mails);
}

void net_free(struct net *net)
{
    if (!net)
        return;
    uint32_t ranks = net->ranks ? ranks_size(net->ranks) : 0;
    team_free(net->team);
    for (uint32_t i = 0; i < net->n_channels; i++) {
        pcap_close(net->channels[i]->pcap);
        free(net->channels[i]);
    }
    for (uint32_t i = 0; i < net->n_nodes; i++) {
        if (net->nodes[i]->sw)
            sw_move(net->nodes[i]->sw, net->nodes[i]->own_pool);
        if (net->nodes[i]->script.plan)
            plan_free(net->nodes[i]->script.plan);
        for (unsigned port = 0; port < EP_PORTS; port++) {
            llr_free(net->nodes[i]->links[port]);
            cable_free(net->nodes[i]->cables[port]);
        }
        free(net->nodes[i]);
    }
    for (uint32_t i = 0; i < net->n_parts; i++) {
        evq_free(&net->parts[i]->queue);
        free(net->parts[i]);
        for (unsigned turn = 0; turn < 2; turn++)
            free(net->dues[i].inboxes[turn].from);
    }
    for (uint32_t i = 0; i < net->n_workers; i++) {
        blocks_free(&net->stores[i]->frames);
        pkt_pool_free(&net->stores[i]->pool);
        free(net->stores[i]);
        free(net->workers[i]->pauses);
        mails_free(net->workers[i]->mails, ranks);
        free(net->workers[i]);
    }
    mails_free(net->arrived, ranks);
    free(net->bounds);
    free(net->parts);
    free(net->dues);
    free(net->stores);
    free(net->workers);
    free(net->samples);
    free(net->stocks);
    free(net->stocks_now);
    free(net->pauses);
    free(net->channels);
    free(net->nodes);
    free(net);
}

static struct node *add_node(struct net *net)
{
    struct node *node = calloc(1, sizeof *node);
    if (!node || !make_room(&net->nodes, net->n_nodes, sizeof *net->nodes)) {
        free(node);
        return NULL;
    }
    node->net = net;
    node->part = net->parts[0];
    node->wake.happen = node_woken;
    node->wake.name = net->n_nodes + 1;
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
    sw_move(sw, &node->part->store->pool);
    own(node);
    sw->keep_on_wire = false; /* a channel does that */
    return net->n_nodes - 1;
}

int64_t net_add_host(struct net *net)
{
    struct node *node = add_node(net);
    if (!node)
        return -1;
    node->script.port =
        (struct plan_port){.ctx = node, .transmit = host_sends, .ended = transfer_ended,
                           .qp_error = pair_failed};
    return net->n_nodes - 1;
}

const char *net_host_lines(struct net *net, uint32_t number, const char *lines, uint32_t *taken)
{
    struct script *script = &net->nodes[number]->script;
    char copy[SCRIPT_LINE_MAX];
    *taken = 0;
    for (const char *end; *lines; lines = *end ? end + 1 : end, ++*taken) {
        end = lines + strcspn(lines, "\n");
        if ((size_t)(end - lines) >= sizeof copy)
            return "the line is too long";
        memcpy(copy, lines, (size_t)(end - lines));
        copy[end - lines] = 0;
        if (!script_line(script, copy))
            return script->problem;
    }
    return NULL;
}

void net_note_shares(struct net *net, struct net_share *shares, uint64_t room)
{
    net->shares = shares;
    net->shares_room = room;
    net->n_shares = 0;
}

uint64_t net_noted_shares(const struct net *net) { return net->n_shares; }

/* From one more channel. */
static bool make_room_for_mail(struct due *due)
{
    for (unsigned turn = 0; turn < 2; turn++)
        if (!make_room(&due->inboxes[turn].from, due->senders, sizeof(struct channel *)))
            return false;
    due->senders++;
    return true;
}

int64_t net_add_channel(struct net *net, uint32_t from, uint32_t from_port, uint32_t to,
                        uint32_t to_port, bps_t rate, uint32_t overhead, ns_t delay)
{
    struct channel *channel = NULL;
    if (posix_memalign((void **)&channel, _Alignof(struct channel), sizeof *channel) ||
        !make_room(&net->channels, net->n_channels, sizeof *net->channels) ||
        !make_room_for_mail(&net->dues[net->nodes[to]->part->number])) {
        free(channel);
        return -1;
    }
    *channel = (struct channel){.arrival = {.happen = channel_arrival, .name = net->n_channels + 1},
                                .sends = net->nodes[from]->part,
                                .receives = net->nodes[to]->part,
                                .net = net,
                                .from = net->nodes[from],
                                .from_port = from_port,
                                .to = net->nodes[to],
                                .to_port = to_port,
                                .rate = rate,
                                .overhead = overhead,
                                .delay = delay,
                                .number = net->n_channels};
    net->stretch = delay < net->stretch ? delay : net->stretch;
    struct node *node = net->nodes[from];
    if (node->ports <= from_port)
        node->ports = from_port + 1;
    if (!node->sw && from_port < EP_PORTS)
        node->out[from_port] = channel;
    else if (!node->sw || !sw_attach(node->sw, from_port, &SWITCH_PORT, channel)) {
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
    ns_t now = net->now;
    channel->is_down = !is_up;
    if (!is_ours(channel->from))
        return;
    if (channel->from->script.plan) {
        ep_set_up(plan_endpoint(channel->from->script.plan), (uint8_t)channel->from_port, is_up, now);
        if (!channel->from->is_halted)
            node_service(channel->from, now);
    }
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
        evq_cancel(&node->part->queue, &node->wake);
    else if (node->script.plan)
        node_service(node, net->now);
}

bool net_set_replay(struct net *net, uint32_t number, uint32_t port, const struct llr_config *config)
{
    struct node *host = net->nodes[number];
    host->links[port] = llr_new(config);
    host->cables[port] = cable_new(host->part->queue.seed << 32 ^ (number * EP_PORTS + port));
    host->tries_again = true;
    return host->links[port] && host->cables[port];
}

void net_spoil(struct net *net, uint32_t number, uint32_t port, uint32_t corrupt)
{
    net->nodes[number]->cables[port]->faults.corrupt = corrupt;
}

void net_host_link(const struct net *net, uint32_t number, uint32_t port, uint64_t *values)
{
    const struct llr *link = net->nodes[number]->links[port];
    const struct cable *cable = net->nodes[number]->cables[port];
    uint64_t *beyond = values + LLR_COUNTS;
    for (unsigned i = 0; i < LLR_COUNTS; i++)
        values[i] = *link->counts[i];
    memset(beyond, 0, 4 * sizeof *beyond);
    for (unsigned class = 0; class < CLASSES; class++) {
        beyond[0] += link->added[class].packets - link->lost[class].packets;
        beyond[1] += link->added[class].bytes - link->lost[class].bytes;
        beyond[2] += cable->lost[class].packets + link->taken[class].packets + link->held[class].packets;
        beyond[3] += cable->lost[class].bytes + link->taken[class].bytes + link->held[class].bytes;
    }
}

bool net_deny(struct net *net, uint32_t number, uint32_t queue_pair, const uint64_t *denied)
{
    struct node *node = net->nodes[number];
    ns_t now = net->now;
    struct ep *ep = plan_endpoint(node->script.plan);
    struct qp *qp = ep_find_qp(ep, queue_pair);
    if (!is_ours(node) || !qp || !ep_deny(ep, qp, denied, now))
        return false;
    if (!node->is_halted)
        node_service(node, now);
    return true;
}

bool net_tell(struct net *net, uint32_t number, const char *line)
{
    struct node *node = net->nodes[number];
    return is_ours(node) && script_key(&node->script, line);
}

void net_set_rate(struct net *net, uint32_t number, bps_t rate)
{
    struct channel *channel = net->channels[number];
    channel->rate = rate;
    if (channel->from->script.plan && is_ours(channel->from))
        ep_set_link(plan_endpoint(channel->from->script.plan), (uint8_t)channel->from_port, rate);
}

/* Running
 *
 * It goes in turns: each begins with the first thing that is to happen and is as long as the shortest
 * delay, so that what a part does in it no other part can hear of before the next. Whether one thread
 * then does all parts or each its own makes no difference, and neither does how nodes were spread over
 * parts, for events are ordered by their names.
 *
 * That no transfer is open any more is known after the turn. So it goes on for a turn's length after the
 * last one ended, wherever in a turn that was: not even where turns begin makes a difference. */

static bool anything_left(const struct net *net) { return first_event(net) != EVQ_NEVER; }

/* To somebody who gave up, what is quiet ended when something happened last. */
static ns_t net_now(const struct net *net)
{
    return !net->gave_up || anything_left(net) ? net->now : net->acted;
}

static void settle_ended(struct net *net, uint64_t ended, ns_t last_end)
{
    net->open -= ended;
    if (ended && last_end > net->last_end)
        net->last_end = last_end;
}

void net_settle(struct net *net)
{
    struct word word = {.first = first_here(net), .has_failed = atomic_load(&net->has_failed)};
    for (uint32_t i = 0; i < net->n_parts; i++) {
        struct part *part = net->parts[i];
        word.ended += part->ended;
        if (part->ended && part->last_end > word.last_end)
            word.last_end = part->last_end;
        word.acted = part->acted > word.acted ? part->acted : word.acted;
        part->ended = 0;
    }
    net->acted = word.acted;
    confer(net, &word);
    settle_ended(net, word.ended, word.last_end);
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
        if (node->script.plan && is_ours(node))
            plan_start(node->script.plan, net->now);
        if (node->script.plan || node->sw)
            node_service(node, net->now);
    }
}

/* What others sent in the turn before: their threads have met ours since. */
static void take_mail(struct inbox *inbox, unsigned turn)
{
    unsigned n = atomic_exchange_explicit(&inbox->n, 0, memory_order_relaxed);
    for (unsigned i = 0; i < n; i++) {
        struct channel *channel = inbox->from[i];
        if (append(&channel->frames, &channel->letters[turn]))
            expect_first(channel);
        channel->letters[turn] = (struct frames){NULL, NULL, 0};
    }
}

/* A part is simulated by somebody, who has other blocks than who did it before. */
static void take_over(struct part *part, struct worker *worker, struct store *store)
{
    part->worker = worker;
    if (part->store == store)
        return;
    part->store = store;
    for (struct node *node = part->switches; node; node = node->next)
        node->sw->pool = &store->pool;
}

static void part_turn(struct net *net, uint32_t number, struct worker *worker, struct store *store)
{
    struct part *part = net->parts[number];
    struct due *due = &net->dues[number];
    struct inbox *inbox = &due->inboxes[!net->turn];
    if (due->next > net->until && !atomic_load_explicit(&inbox->n, memory_order_relaxed)) {
        part->letter = EVQ_NEVER;
        worker->first = due->next < worker->first ? due->next : worker->first;
        return;
    }
    take_over(part, worker, store);
    part->letter = EVQ_NEVER;
    take_mail(inbox, !net->turn);
    uint64_t count = evq_run(&part->queue, net->until);
    worker->count += count;
    if (SW_UNLIKELY(net->shares != NULL) && net->n_shares < net->shares_room)
        net->shares[net->n_shares++] = (struct net_share){net->turns, number, (uint32_t)count};
    due->next = evq_next(&part->queue);
    worker->ended += part->ended;
    if (part->ended && part->last_end > worker->last_end)
        worker->last_end = part->last_end;
    part->ended = 0;
    ns_t first = due->next < part->letter ? due->next : part->letter;
    worker->first = first < worker->first ? first : worker->first;
}

/* A part's turn is some steps away: what it will want, each as soon as its address is in the cache. Only
 * what nobody writes meanwhile is read, for it may be somebody else's turn. */
static void fetch_part(struct net *net, uint32_t number, unsigned steps)
{
    if (number >= net->n_parts)
        return;
    const struct inbox *inbox = &net->dues[number].inboxes[!net->turn];
    unsigned n = atomic_load_explicit(&inbox->n, memory_order_relaxed);
    const struct part *part = net->parts[number];
    if (!n)
        return;
    if (steps == 3) {
        lines_fetch(part, sizeof *part);
        lines_fetch(inbox->from, n * sizeof *inbox->from);
        return;
    }
    for (unsigned i = 0; i < n; i++) {
        const struct channel *channel = inbox->from[i];
        if (steps == 2) {
            lines_fetch(channel, offsetof(struct channel, left[7]));
            __builtin_prefetch(channel->letters);
        } else if (channel->to->sw) {
            sw_port_fetch(channel->to->sw->ports[channel->to_port]);
        }
    }
}

/* Somebody's share of a turn, and then what is left of others'. */
static void work(void *context, unsigned number)
{
    struct net *net = context;
    struct worker *own = net->workers[number];
    struct store *store = net->stores[(number + net->turns / SAME_STORE) % net->n_workers];
    for (uint32_t i = 0; i < net->n_workers; i++) {
        struct worker *whose = net->workers[(number + i) % net->n_workers];
        unsigned part;
        while ((part = atomic_fetch_add_explicit(&whose->taken, 1, memory_order_relaxed)) < whose->end) {
            for (unsigned steps = 3; steps; steps--)
                fetch_part(net, part + steps, steps);
            part_turn(net, part, own, store);
        }
    }
}

/* Whether the next turn is to be handed to others. */
static bool is_shared(struct net *net)
{
    if (net->n_workers == 1 || net->last_count < net->worth)
        return false;
    if (net->alone) {
        net->alone--;
        return false;
    }
    if (!net->team && !(net->team = team_new(net->n_workers, work, net)))
        net->alone = MAX_ALONE; /* there can be no more threads now */
    return net->team != NULL;
}

/* Learn from a turn that was. */
static void judge(struct net *net, bool was_good)
{
    if (was_good)
        net->bad -= net->bad > 0;
    else
        net->bad += BAD_TURN;
    if (net->bad < BAD_TURNS || !net->worth)
        return;
    net->bad = 0;
    net->alone = net->next_alone ? net->next_alone : ALONE;
    net->next_alone = net->alone < MAX_ALONE ? 2 * net->alone : MAX_ALONE;
}

/* All parts, up to and including a time; what is next in any of them, and how much happened. */
static ns_t turn(struct net *net, ns_t until, uint64_t *count)
{
    struct word word = {.first = EVQ_NEVER};
    uint64_t parts = net->end - net->begin;
    net->until = until;
    net->turn = !net->turn;
    net->turns++;
    for (uint32_t i = 0; i < net->n_workers; i++) {
        atomic_store_explicit(&net->workers[i]->taken,
                              net->begin + (uint32_t)(i * parts / net->n_workers),
                              memory_order_relaxed);
        net->workers[i]->end = net->begin + (uint32_t)((i + 1) * parts / net->n_workers);
        net->workers[i]->count = net->workers[i]->ended = 0;
        net->workers[i]->first = EVQ_NEVER;
    }
    if (is_shared(net))
        judge(net, team_round(net->team, LOOKS + (unsigned)net->last_count * LOOKS_AN_EVENT));
    else
        work(net, 0);
    for (uint32_t i = 0; i < net->n_workers; i++) {
        const struct worker *worker = net->workers[i];
        struct word its = {.first = worker->first, .last_end = worker->last_end,
                           .count = worker->count, .ended = worker->ended};
        add_word(&word, &its);
    }
    word.has_failed = atomic_load_explicit(&net->has_failed, memory_order_relaxed);
    net->last_count = word.count;
    confer(net, &word);
    settle_ended(net, word.ended, word.last_end);
    net->now = until;
    *count += word.count;
    return word.first;
}

/* When what follows the last transfer's end is over, if that was the last. */
static ns_t end_of(const struct net *net)
{
    return net->last_end + net->stretch - (net->stretch > 0);
}

/* Something may have been done to nodes since the last turn. */
static ns_t look_for_first(struct net *net)
{
    for (uint32_t i = 0; i < net->n_parts; i++)
        net->dues[i].next = evq_next(&net->parts[i]->queue);
    return first_event(net);
}

static void run_in_turns(struct net *net, ns_t until, uint64_t most)
{
    uint64_t count = 0;
    ns_t first = look_for_first(net);
    while (net->open ? count < most : net->now < end_of(net)) {
        ns_t end = net->next_look < until ? net->next_look : until;
        end = net->open ? end : end_of(net);
        if (first > end || first == EVQ_NEVER) {
            if (end != EVQ_NEVER && end > net->now)
                net->now = end;
            if (end != net->next_look || end == EVQ_NEVER || !net->open)
                break;
            sample(net, end);
            count++;
            continue;
        }
        if (!net->stretch)
            end = first;
        else if (end - first >= net->stretch)
            end = first + net->stretch - 1;
        first = turn(net, end, &count);
        keep_pauses(net);
        if (atomic_load_explicit(&net->has_failed, memory_order_relaxed))
            break;
    }
}

ns_t net_run(struct net *net, ns_t until, uint64_t most_events)
{
    net_settle(net);
    if (net->samples && net->next_look == EVQ_NEVER && anything_left(net)) /* done from outside */
        net->next_look = net->now + net->sample_interval;
    run_in_turns(net, until, most_events);
    return net_now(net);
}

ns_t net_give_up(struct net *net)
{
    net->gave_up = true;
    net_settle(net);
    return net_now(net);
}

bool net_has_starved(struct net *net) { return atomic_load(&net->has_starved); }

void net_arrived(struct net *net) { net->team = NULL; }

void net_wake(struct net *net, uint32_t node) { node_service(net->nodes[node], net->now); }

/* Neither in channels nor in switches; whatever of hosts has left them. */
static bool anything_under_way(const struct net *net)
{
    for (uint32_t i = 0; i < net->n_channels; i++) {
        const struct channel *channel = net->channels[i];
        if (channel->frames.head || channel->letters[0].head || channel->letters[1].head)
            return true;
    }
    for (uint32_t i = 0; i < net->n_nodes; i++)
        if (net->nodes[i]->sw && net->nodes[i]->sw->held)
            return true;
    return false;
}

uint64_t net_liken(const struct net *net, const uint8_t *tallies, bool lots, uint64_t *values,
                   uint8_t *kinds)
{
    struct likeness to = {values, kinds, 0};
    if (anything_under_way(net))
        return 0;
    for (uint32_t i = 0; i < net->n_channels; i++)
        like(&to, LIKE_SAME, net->channels[i]->is_down);
    for (uint32_t i = 0; i < net->n_nodes; i++) {
        const struct node *node = net->nodes[i];
        like(&to, LIKE_SAME, node->is_halted);
        if (node->sw)
            liken_switch(&to, node->sw, tallies, lots);
        else if (node->script.plan && !liken_host(&to, node->script.plan))
            return 0;
    }
    return to.n;
}

uint64_t net_alike(const uint64_t *first, const uint64_t *second, const uint64_t *third,
                   const uint8_t *kinds, uint64_t count, ns_t period)
{
    return likeness_of((const uint64_t *const[]){first, second, third}, kinds, count, period);
}

void net_pretend(struct net *net, ns_t later)
{
    for (uint32_t i = 0; i < net->n_parts; i++)
        evq_pretend(&net->parts[i]->queue, later);
}

ns_t net_ended(const struct net *net) { return net->open ? net_now(net) : net->last_end; }

bool net_has_failed(struct net *net)
{
    return atomic_exchange_explicit(&net->has_failed, false, memory_order_relaxed);
}

uint64_t net_open_transfers(const struct net *net)
{
    uint64_t open = net->open;
    for (uint32_t i = 0; i < net->n_parts; i++)
        open -= net->parts[i]->ended;
    return open;
}

bool net_is_quiet(const struct net *net) { return !anything_left(net); }

void net_account(const struct net *net, struct net_account *account)
{
    *account = (struct net_account){.looks = net->looks};
    for (uint32_t i = 0; i < net->n_parts; i++) {
        account->delivered += net->parts[i]->delivered;
        account->events += net->parts[i]->queue.happened;
        account->early += net->parts[i]->early;
    }
}

uint32_t net_books(const struct net *net, uint32_t number, struct book_line *lines, uint32_t room)
{
    const struct channel *channel = net->channels[number];
    struct book_report report = {lines, room, 0};
    struct port_count held[CLASSES] = {{0, 0}};
    count_frames(held, &channel->frames);
    for (unsigned turn = 0; turn < 2; turn++)
        count_frames(held, &channel->letters[turn]);
    book_add(&report, BOOK_IN, 0, channel->in, CLASSES);
    book_add(&report, BOOK_LEFT, 0, channel->left, CLASSES);
    for (unsigned why = 0; why < NET_WAYS_TO_LOSE; why++)
        book_add(&report, BOOK_DROPPED, why, channel->dropped[why], CLASSES);
    book_add(&report, BOOK_HELD, 0, held, CLASSES);
    return report.n;
}

void net_channel_report(const struct net *net, uint32_t channel, struct net_channel_report *report)
{
    *report = net->channels[channel]->counts;
    report->lost = net->channels[channel]->lost;
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

const struct ep_way_note *net_way_notes(const struct net *net, uint32_t node, uint32_t *count)
{
    return ep_way_notes(plan_endpoint(net->nodes[node]->script.plan), count);
}

void net_host_port(struct net *net, uint32_t node, uint8_t port, uint64_t *values)
{
    struct ep_port_counters its = ep_port_counters(plan_endpoint(net->nodes[node]->script.plan), port);
#define COUNTER(name) *values++ = its.name;
    EP_PORT_COUNTERS(COUNTER)
#undef COUNTER
    memcpy(values, its.paused_ns, sizeof its.paused_ns);
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
