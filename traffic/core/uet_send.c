/* UET's sending side: what flies, what is lost, and what is asked for.
 *
 *        una                              next                posted
 *   ──────┼────────────────────────────────┼────────────────────┼──────►  sequence numbers
 *    done │ arrived, flies or lost          │ never out          │
 *
 * Every transmission has a number (its order). A packet is lost, and sent again before anything new,
 *   - when a NACK says that it was cut;
 *   - when one that was sent long after it has arrived: twice as many packets later as any was of late
 *     that did arrive, five at least, once it has taken half as long again as the longest round trip
 *     of late. Where nothing is cut, whatever that is, as many as 1.5 windows hold, or the largest
 *     window (the bound is that of UET's loss recovery without trimming, SLEEK, in htsim, which waits so
 *     long always): ways differ by their queues, and windows bound these. Where switches cut, who is late
 *     is seldom lost, and on a slow way later than that;
 *   - when a probe's answer does not know it, of what flew before the probe left.
 * Probes ask when nothing was heard for a round trip as long as the longest of late, or for `rto_first`.
 * The second in a row finds everything lost, and each waits twice as long as the one before, up to `rto`;
 * after `rto` x `retry_limit` of silence, or one `rto`, the queue pair gives up, as a RoCEv2 one does.
 * Credit that was granted and got lost is asked for in the same way.
 *
 * In a lossless class nothing is lost for want of room, and a pause holds one way for as long as it likes
 * while others go on: neither who is overtaken nor who is silent is lost. There a probe in the class of
 * the data follows whoever is suspected by the same way, behind it in every queue. The answer to that
 * proves it: what left before by that way and has not come never will. Where switches choose ways packet
 * by packet a probe need not be behind it, and only what is MULTIPATH of the longest round trips older
 * than the probe is lost. Silence proves nothing until PATIENCE of its doublings, or `rto`, are over.
 */
#include "invariant.h"
#include "uet.h"

#include <stdlib.h>

enum { MIN_OVERTAKERS = 5, OVERTAKERS_WINDOWS_2 = 3 /* halves of a window */,
       FORGET_OVERTAKING = 64, PATIENCE = 10, MULTIPATH = 8 };

static uint64_t end_of(const struct ep_message *message)
{
    return message->first + message->packets;
}

static struct uet_sent *record_of(const struct uet *uet, uint64_t seq)
{
    return &uet->sent[(uint32_t)seq & uet->acked.mask];
}

/* The message that a packet is of, and how much of it. */
static const struct ep_message *message_at(const struct ep *ep, const struct qp *qp, uint64_t seq,
                                           uint32_t *offset, uint32_t *bytes)
{
    struct sending *out = qp->out;
    const struct ep_message *message = seq == out->next ? out->cursor : qp->head;
    while (seq >= end_of(message))
        message = message->next;
    *offset = (uint32_t)(seq - message->first) * ep->config.mtu;
    uint32_t left = message->size - *offset;
    *bytes = left < ep->config.mtu ? left : ep->config.mtu;
    return message;
}

void uet_prepare(struct ep *ep, struct qp *qp, ns_t base_rtt)
{
    struct uet *uet = qp->uet;
    const struct ep_config *config = &ep->config;
    uet->high = qp->expected;
    uet->first_lost = qp->una;
    uet->round_trip = base_rtt;
    uet->overtaken = config->window;
    uet->base_rtt = base_rtt;
    uet->peer_up = UINT8_MAX;
    uint16_t each = config->entropies / config->ports;
    for (uint32_t port = 0; port < config->ports; port++)
        entropy_init(&uet->entropy[port], config->entropy, each, qp->number ^ config->seed ^ port << 16,
                     uet->ways + (uet->ways ? port * each : 0));
}

static struct cc_link link(const struct ep *ep, const struct qp *qp)
{
    return (struct cc_link){
        .rate = qp->common->rate,
        .base_rtt = qp->uet->base_rtt,
        .packet = uet_frame_size(ep, ep->config.mtu),
        .has_trimming = ep->config.has_trimming,
        .hops = ep->config.hops,
    };
}

/* Whether probes of a lossless class find out what is lost (see the top). */
static bool is_questioned(const struct ep *ep, const struct qp *qp)
{
    return qp_is_lossless(ep, qp) && ep->config.delivery <= EP_ROD;
}

static bool make_room(const struct ep *ep, struct qp *qp)
{
    struct uet *uet = qp->uet;
    uint32_t packets = uet->acked.mask + 1;
    if (uet->sent)
        return true;
    if (is_questioned(ep, qp) && !(uet->questions = calloc(UET_QUESTIONS, sizeof *uet->questions)))
        return false;
    uet->sent = calloc(packets, sizeof *uet->sent);
    uet->line = calloc(2 * (size_t)packets, sizeof *uet->line);
    return uet->sent && uet->line;
}

static uint64_t next_lost(struct qp *qp)
{
    struct uet *uet = qp->uet;
    if (uet->first_lost < qp->una)
        uet->first_lost = qp->una;
    while (!seqset_has(&uet->lost, uet->first_lost))
        uet->first_lost++;
    return uet->first_lost;
}

static bool can_send(const struct ep *ep, struct qp *qp)
{
    struct sending *out = qp->out;
    struct uet *uet = qp->uet;
    if (qp->error)
        return false;
    bool again = uet->lost_count != 0;
    if (!again && (out->next >= out->posted || out->next - qp->una >= ep->config.window))
        return false;
    if (!out->cc || !out->cc->ops->may_send)
        return true;
    uint32_t offset, bytes;
    const struct ep_message *message =
        message_at(ep, qp, again ? next_lost(qp) : out->next, &offset, &bytes);
    return out->cc->ops->may_send(out->cc, uet_size_of(ep, message, bytes), uet->in_flight);
}

/* Time is out when nothing is heard for so long from now on. */
static void start_timer(struct ep *ep, struct qp *qp, ns_t now, bool progress)
{
    struct sending *out = qp->out;
    ns_t first = qp->uet->round_trip, most = ep->config.rto;
    if (first < ep->config.rto_first)
        first = ep->config.rto_first;
    out->rto = progress || !out->rto ? first : 2 * out->rto;
    if (most && out->rto > most)
        out->rto = most > first ? most : first;
    if (progress)
        out->silent = out->retries = 0;
    out->rto_at = now + out->rto;
    schedule_rto(ep, qp);
}

/* Nothing flies whose answer could bring the credit that what waits has to have. */
static bool starves(const struct ep *ep, struct qp *qp)
{
    struct sending *out = qp->out;
    return uet_spends(qp) && qp->una >= out->sent && out->next < out->posted &&
           !can_send(ep, qp);
}

/* What is known of the ways of a port, and the number that a way of an entropy has among them. */
static struct entropy *entropy_of(const struct ep *ep, const struct qp *qp, uint16_t entropy)
{
    return &qp->uet->entropy[uet_plane(ep, entropy)];
}

static uint16_t way_of(const struct ep *ep, uint16_t entropy) { return entropy / ep->config.ports; }

uint16_t uet_next_entropy(const struct ep *ep, const struct qp *qp, uint8_t port, ns_t now)
{
    return entropy_next(&qp->uet->entropy[port], now) * ep->config.ports + port;
}

static void ask_for_credit(struct ep *ep, struct qp *qp, ns_t now)
{
    struct uet_answer request = {.kind = UET_SAY_CREDIT_REQ};
    if (ep->config.ports > 1)
        request.entropy = uet_next_entropy(ep, qp, first_port(qp->ports), now);
    uet_owe(ep, qp, &request, now);
}

static void post(struct ep *ep, struct qp *qp, struct ep_message *message, ns_t now)
{
    if (!make_room(ep, qp)) {
        qp_fail(ep, qp, EP_LOCAL_DATA, now);
        ep_event(ep, EP_FAILED, qp, message, now);
        return;
    }
    qp->uet->backlog += message->size;
    message->number = ++qp->uet->posted;
    requester_append(ep, qp, message);
    if (starves(ep, qp)) {
        ask_for_credit(ep, qp, now);
        if (qp->out->rto_at == NS_NEVER)
            start_timer(ep, qp, now, true);
    }
    schedule_data(ep, qp, now);
}

static void note_sent(struct ep *ep, struct qp *qp, uint64_t seq, uint32_t size, uint16_t entropy,
                      ns_t now)
{
    struct sending *out = qp->out;
    struct uet *uet = qp->uet;
    struct uet_sent *record = record_of(uet, seq);
    uint64_t room = 2 * ((uint64_t)uet->acked.mask + 1);
    *record = (struct uet_sent){.order = uet->line_end,
                                .at = now,
                                .size = size,
                                .entropy = entropy,
                                .flies = true,
                                .again = seq < out->sent};
    if (uet->line_end - uet->line_first == room)
        uet->line_first++; /* only probes find out about it now */
    uet->line[uet->line_end++ % room] = seq;
    uet->in_flight += size;
    if (out->cc && out->cc->ops->sent)
        out->cc->ops->sent(out->cc, size, uet->in_flight, now);
    if (out->rto_at != NS_NEVER)
        return;
    if (!uet_delivers(ep, EP_UUD)) {
        start_timer(ep, qp, now, true);
        return;
    }
    out->rto_at = now + 1; /* nothing will be heard: it is done with */
    schedule_rto(ep, qp);
}

static void forget_lost(struct uet *uet, uint64_t seq)
{
    if (seqset_has(&uet->lost, seq)) {
        seqset_remove(&uet->lost, seq);
        uet->lost_count--;
    }
}

/* Data goes where some way is good; if there is no such port, by any that has a link. */
static void choose_ports(const struct ep *ep, struct qp *qp)
{
    uint8_t good = 0, free = 0; /* free: of denials */
    for (uint8_t port = 0; port < ep->config.ports; port++) {
        const struct health *health = &qp->uet->entropy[port].health;
        good |= (uint8_t)((health->good != 0) << port);
        free |= (uint8_t)(!health_denies_all(health) << port);
    }
    uint8_t up = uet_links(ep, qp);
    qp->ports = good & up ? good & up : free & up ? free & up : up ? up : good;
}

/* What is known of a way; of one that nothing is kept of it is good. */
static uint8_t state_of(const struct ep *ep, const struct qp *qp, uint16_t entropy)
{
    const struct health *health = &entropy_of(ep, qp, entropy)->health;
    uint16_t way = way_of(ep, entropy);
    uint8_t state = health->ways && way < health->count ? health->ways[way].state : WAY_GOOD;
    return state == WAY_SKIP ? WAY_GOOD : state;
}

/* A way may have changed, from what it was: note it, as far as there is room. */
static void note_way(struct ep *ep, const struct qp *qp, uint16_t entropy, uint8_t was, ns_t now)
{
    uint8_t state = state_of(ep, qp, entropy);
    if (state == was || ep->n_way_notes == EP_WAY_NOTES)
        return;
    if (!ep->way_notes)
        ep->way_notes = calloc(EP_WAY_NOTES, sizeof *ep->way_notes);
    if (ep->way_notes)
        ep->way_notes[ep->n_way_notes++] = (struct ep_way_note){
            .at = now, .queue_pair = qp->number, .entropy = entropy, .state = state};
}

/* A packet was lost that went this way. */
static void lost_by(struct ep *ep, struct qp *qp, uint16_t entropy, ns_t now)
{
    uint8_t was = state_of(ep, qp, entropy);
    entropy_lost(entropy_of(ep, qp, entropy), way_of(ep, entropy), qp->uet->round_trip, now);
    note_way(ep, qp, entropy, was, now);
    choose_ports(ep, qp);
}

static void ports_changed(struct ep *ep, struct qp *qp, ns_t now)
{
    choose_ports(ep, qp);
    schedule_data(ep, qp, now);
}

bool uet_deny(struct ep *ep, struct qp *qp, const uint64_t *denied, ns_t now)
{
    uint16_t left = 0;
    for (uint16_t value = 0; value < ep->config.entropies; value++)
        left += !(denied[value / 64] >> value % 64 & 1);
    if (!qp->uet->ways || !left)
        return false;
    for (uint16_t value = 0; value < ep->config.entropies; value++) {
        uint8_t was = state_of(ep, qp, value);
        health_deny(&entropy_of(ep, qp, value)->health, way_of(ep, value),
                    denied[value / 64] >> value % 64 & 1);
        note_way(ep, qp, value, was, now);
    }
    ports_changed(ep, qp, now);
    return true;
}

/* Ask about ways that were lost to us, those that it is time for. */
static void probe_ways(struct ep *ep, struct qp *qp, ns_t now)
{
    struct uet *uet = qp->uet;
    for (uint8_t port = 0; uet->ways && port < ep->config.ports; port++) {
        struct health *health = &uet->entropy[port].health;
        while (uet_links(ep, qp) >> port & 1 && uet->n_answers < UET_ANSWERS / 2) {
            uint16_t way = health_probe(health, uet->round_trip, now);
            if (way == HEALTH_NO_WAY)
                break;
            uint16_t entropy = (uint16_t)(way * ep->config.ports + port);
            struct uet_answer probe = {.kind = UET_SAY_PROBE,
                                       .seq = qp->una,
                                       .entropy = entropy,
                                       .opaque = (uint16_t)(1 + entropy)};
            uet_owe(ep, qp, &probe, now);
        }
    }
}

/* Among several ports, turns that were passed over are the other planes' gain: what one plane finds
 * too much is not pressed through its other ways. */
static void rest(struct ep *ep, const struct qp *qp, uint8_t port, uint32_t wire)
{
    struct health *health = &qp->uet->entropy[port].health;
    struct lane *lane = &ep->lanes[port];
    if (ep->config.ports > 1)
        lane->rest = lane->free +
                     health->skipped * ps_for_bytes(wire + ep->config.overhead_bytes, lane->rate);
    health->skipped = 0;
}

static uint32_t send(struct ep *ep, struct qp *qp, uint8_t port, ns_t now)
{
    struct sending *out = qp->out;
    struct uet *uet = qp->uet;
    bool again = uet->lost_count != 0;
    struct uet_segment segment = {.seq = again ? next_lost(qp) : out->next, .again = again};
    segment.message = message_at(ep, qp, segment.seq, &segment.offset, &segment.bytes);
    struct entropy before = uet->entropy[port];
    segment.entropy = uet_next_entropy(ep, qp, port, now);
    segment.stamp = mrc_stamp(now);
    segment.credit_target = uet_target(ep, qp);
    uint32_t stored, wire = ep->format->data(ep, qp, &segment, &stored);
    ps_t at = schedule_send(ep, port, stored, wire, qp->priority, qp->ready, now);
    if (at == PS_NEVER) {
        uet->entropy[port] = before;
        return 0;
    }
    rest(ep, qp, port, wire);
    qp->ready = at + (qp->common->rate < ep_bps(ep) ? ps_for_bytes(wire, qp->common->rate) : 0);
    ep->counters.tx_data_packets++;
    ep->counters.tx_data_bytes += segment.bytes;
    note_sent(ep, qp, segment.seq, wire, segment.entropy, now);
    if (again) {
        forget_lost(uet, segment.seq);
        ep->counters.retransmitted_packets++;
        ep->counters.retransmitted_bytes += segment.bytes;
    } else {
        uet->backlog -= segment.bytes;
        out->sent = ++out->next;
        while (out->cursor && out->next >= end_of(out->cursor))
            out->cursor = out->cursor->next;
    }
    return wire;
}

/* It flies no more. Returns its size if it did. */
static uint32_t land(struct uet *uet, uint64_t seq)
{
    struct uet_sent *record = record_of(uet, seq);
    if (!record->flies)
        return 0;
    record->flies = false;
    INVARIANT(uet->in_flight >= record->size);
    uet->in_flight -= record->size;
    return record->size;
}

static void mark_lost(struct uet *uet, uint64_t seq)
{
    if (seqset_has(&uet->lost, seq))
        return;
    seqset_add(&uet->lost, seq);
    uet->lost_count++;
    if (seq < uet->first_lost)
        uet->first_lost = seq;
}

static void lose(struct ep *ep, struct qp *qp, uint64_t seq, ns_t now)
{
    struct uet *uet = qp->uet;
    uint32_t size = land(uet, seq);
    if (!size)
        return;
    mark_lost(uet, seq);
    lost_by(ep, qp, record_of(uet, seq)->entropy, now);
    struct cc *cc = qp->out->cc;
    if (cc && cc->ops->lost)
        cc->ops->lost(cc, size, uet->in_flight, now);
}

/* ROD: this one is missing, and whatever was sent after it is of no use. */
static void go_back(struct ep *ep, struct qp *qp, uint64_t seq, ns_t now)
{
    lose(ep, qp, seq, now);
    for (uint64_t later = seq + 1; later < qp->out->sent; later++)
        if (land(qp->uet, later))
            mark_lost(qp->uet, later);
}

/* One has arrived of which that was not known: its size. */
static uint32_t arrived(struct qp *qp, uint64_t seq)
{
    struct uet *uet = qp->uet;
    const struct uet_sent *record = record_of(uet, seq);
    seqset_add(&uet->acked, seq);
    forget_lost(uet, seq);
    land(uet, seq);
    double behind = uet->newest > record->order ? (double)(uet->newest - record->order) : 0;
    uet->overtaken += behind > uet->overtaken ? behind - uet->overtaken
                                              : (behind - uet->overtaken) / FORGET_OVERTAKING;
    if (uet->newest < record->order)
        uet->newest = record->order;
    return record->size;
}

/* Whether probes of a way stay behind the data of that way. */
static bool ways_are_queues(const struct ep *ep, const struct qp *qp)
{
    return !ep->config.multipath && qp_answers_as_data(ep, qp);
}

/* Send a probe after a packet of a lossless class. */
static void ask(struct ep *ep, struct qp *qp, uint64_t seq, ns_t now)
{
    struct uet *uet = qp->uet;
    uint64_t sent = qp->out->sent, end = seq + UET_SACK_BITS < sent ? seq + UET_SACK_BITS : sent;
    uint16_t entropy = record_of(uet, seq)->entropy;
    struct uet_answer probe = {.kind = UET_SAY_PROBE,
                               .seq = end - 1,
                               .entropy = entropy,
                               .opaque = (uint16_t)(UET_QUESTION | uet->asked)};
    uet->questions[uet->asked++ % UET_QUESTIONS] = (struct uet_question){
        .order = uet->line_end, .end = end, .at = now, .entropy = entropy, .open = true};
    uet_owe(ep, qp, &probe, now);
}

/* See to it that an answer will tell whether a packet of a lossless class is lost. False if it is too
 * early to ask, or too much is asked already. */
static bool suspect(struct ep *ep, struct qp *qp, uint64_t seq, ns_t now)
{
    const struct uet *uet = qp->uet;
    const struct uet_sent *record = record_of(uet, seq);
    if (!ways_are_queues(ep, qp) && now - record->at < MULTIPATH * uet->round_trip)
        return false;
    for (unsigned i = 0; i < UET_QUESTIONS; i++) {
        const struct uet_question *question = &uet->questions[i];
        if (question->open && question->entropy == record->entropy &&
            question->order > record->order && seq < question->end)
            return true;
    }
    const struct uet_question *oldest = &uet->questions[uet->asked % UET_QUESTIONS];
    if (oldest->open && now - oldest->at < uet->round_trip)
        return false;
    ask(ep, qp, seq, now);
    return true;
}

/* What was sent so long before one that has arrived that it should have, too, is lost, or suspected. */
static void find_overtaken(struct ep *ep, struct qp *qp, ns_t now)
{
    struct uet *uet = qp->uet;
    uint64_t room = 2 * ((uint64_t)uet->acked.mask + 1), patience = ep->config.window;
    uint64_t seen = (uint64_t)(2 * uet->overtaken), most;
    const struct cc *cc = qp->out->cc;
    if (cc && !cc->link.has_trimming) {
        double window = cc->window * OVERTAKERS_WINDOWS_2 / 2;
        window = window < cc->most ? window : cc->most;
        patience = (uint64_t)(window / (double)cc->link.packet);
    }
    most = patience < MIN_OVERTAKERS ? MIN_OVERTAKERS : patience;
    patience = seen < MIN_OVERTAKERS ? MIN_OVERTAKERS : seen < most ? seen : most;
    for (; uet->line_first < uet->line_end; uet->line_first++) {
        uint64_t seq = uet->line[uet->line_first % room];
        const struct uet_sent *record = record_of(uet, seq);
        bool counts = seq >= qp->una && record->order == uet->line_first && record->flies;
        bool early = now - record->at < uet->round_trip + uet->round_trip / 2;
        if (counts && uet->line_first + (early ? most : patience) >= uet->newest)
            return;
        if (counts && uet->questions && !suspect(ep, qp, seq, now))
            return;
        if (counts && !uet->questions)
            lose(ep, qp, seq, now);
    }
}

static void complete(struct ep *ep, struct qp *qp, uint64_t upto, ns_t now)
{
    struct uet *uet = qp->uet;
    for (uint64_t seq = qp->una; seq < upto; seq++)
        seqset_remove(&uet->acked, seq);
    qp->una = qp->out->acked = upto;
    requester_complete(ep, qp, upto, now);
}

/* Everything before `upto`, and what the map says beyond. Returns the bytes that are news. */
static bytes_t settle(struct qp *qp, uint64_t upto, uint64_t first, uint64_t map)
{
    struct uet *uet = qp->uet;
    bytes_t news = 0;
    for (uint64_t seq = qp->una; seq < upto; seq++)
        if (!seqset_has(&uet->acked, seq))
            news += arrived(qp, seq);
    for (; map; map &= map - 1) {
        uint64_t seq = first + (uint32_t)__builtin_ctzll(map);
        if (seq >= upto && seq >= qp->una && seq < qp->out->sent && !seqset_has(&uet->acked, seq))
            news += arrived(qp, seq);
    }
    return news;
}

static void note_round_trip(struct uet *uet, ns_t took)
{
    uet->round_trip = took > uet->round_trip ? took : uet->round_trip - (uet->round_trip - took) / 16;
}

/* Whether a packet of which the answer to a probe does not know is lost; question: of a lossless class. */
static bool is_found_lost(const struct ep *ep, const struct qp *qp, const struct uet_sent *record,
                          const struct uet_question *question)
{
    const struct uet *uet = qp->uet;
    if (!question)
        return record->at + uet->round_trip <= uet->probed_at;
    if (!ways_are_queues(ep, qp))
        return record->at + MULTIPATH * uet->round_trip <= question->at;
    return record->order < question->order && record->entropy == question->entropy;
}

static void answered_probe(struct ep *ep, struct qp *qp, const struct uet_question *question,
                           uint64_t upto, uint64_t first, ns_t now)
{
    struct sending *out = qp->out;
    const struct uet *uet = qp->uet;
    uint64_t end = first + UET_SACK_BITS < out->sent ? first + UET_SACK_BITS : out->sent;
    for (uint64_t seq = upto; seq < end; seq++) {
        const struct uet_sent *record = record_of(uet, seq);
        if (seq < qp->una || !record->flies || !is_found_lost(ep, qp, record, question))
            continue;
        if (uet_delivers(ep, EP_ROD)) {
            go_back(ep, qp, seq, now);
            return;
        }
        lose(ep, qp, seq, now);
    }
}

static void answered_question(struct ep *ep, struct qp *qp, uint16_t opaque, uint64_t upto,
                              uint64_t first, ns_t now)
{
    struct uet *uet = qp->uet;
    struct uet_question *question = &uet->questions[opaque % UET_QUESTIONS];
    bool is_of_late = (uint16_t)((uet->asked - 1 - opaque) & ~UET_QUESTION) < UET_QUESTIONS;
    if (!is_of_late || !question->open)
        return;
    question->open = false;
    note_round_trip(uet, now - question->at);
    answered_probe(ep, qp, question, upto, first, now);
}

/* A way that was asked about leads there. */
static void answered_way(struct ep *ep, struct qp *qp, uint16_t entropy, bool marked, ns_t now)
{
    if (!qp->uet->ways)
        return; /* nobody asked */
    uint8_t was = state_of(ep, qp, entropy);
    health_answered(&entropy_of(ep, qp, entropy)->health, way_of(ep, entropy), marked, now);
    note_way(ep, qp, entropy, was, now);
    choose_ports(ep, qp);
}

/* One has come by the way that an answer is about. */
static void arrived_by(struct ep *ep, struct qp *qp, const struct uet_packet *packet, ns_t now)
{
    entropy_arrived(entropy_of(ep, qp, packet->about), way_of(ep, packet->about),
                    packet->told_marked);
    if (packet->told_bad)
        lost_by(ep, qp, packet->about, now);
    else if (qp->uet->reverse)
        qp->uet->reverse[uet_plane(ep, packet->about)] = packet->about;
}

/* How long a packet took, and its answer: as the stamp that came back says, which knows of which
 * transmission, or what is noted of the last; 0: untold. A stamp comes round after 8 ms: who was sent
 * longer ago is not told by it. */
static ns_t round_trip_of(const struct ep *ep, const struct uet_packet *packet,
                          const struct uet_sent *record, ns_t now)
{
    if (!record->at || !ep->config.timestamps)
        return record->again != packet->again || !record->at ? 0 : now - record->at;
    if (now - record->at >= (ns_t)MRC_STAMP_NS * UINT16_MAX)
        return 0;
    return (ns_t)(uint16_t)(mrc_stamp(now) - packet->stamp) * MRC_STAMP_NS;
}

/* Tell a queue pair's control of an answer that brought news. */
static void tell(const struct qp *qp, bytes_t news, ns_t round_trip, bool marked, ns_t now)
{
    struct sending *out = qp->out;
    struct cc_ack ack = {
        .now = now,
        .bytes = news,
        .in_flight = qp->uet->in_flight,
        .round_trip = round_trip,
        .marked = marked,
        .acked = qp->una,
        .next = out->next,
    };
    out->cc->ops->acked(out->cc, &ack);
}

void uet_acked(struct ep *ep, struct qp *qp, const struct uet_packet *packet, ns_t now)
{
    struct sending *out = qp->out;
    struct uet *uet = qp->uet;
    uint64_t cack = uet_unwrap_as(ep, qp->una, packet->psn);
    uint64_t first = cack + packet->map_ahead, seq = cack + (uint64_t)(int64_t)packet->ahead;
    uint64_t map = packet->map;
    bool to_probe = packet->to_probe, marked = packet->told_marked;
    if (uet_delivers(ep, EP_RUDI)) { /* it tells of one packet */
        seq = first = cack;
        cack = qp->una - 1;
        map = 1;
    }
    if (!uet->sent || cack >= out->sent || seq >= out->sent ||
        packet->spends != (uet_spends(qp))) {
        ep->counters.rx_refused++;
        return;
    }
    ep->counters.rx_acks++;
    bool remembered = !to_probe && seq + uet->acked.mask >= out->next && seq + 1 > SEQ_START;
    struct uet_sent record = remembered ? *record_of(uet, seq) : (struct uet_sent){0};
    uint64_t upto = cack + 1 > qp->una ? cack + 1 : qp->una;
    bytes_t news = settle(qp, upto, first, map);
    while (uet_delivers(ep, EP_RUDI) && upto < out->sent && seqset_has(&uet->acked, upto))
        upto++;
    if (remembered) {
        arrived_by(ep, qp, packet, now);
        if (record.again && !packet->again)
            uet->overtaken *= 2; /* it was late, and not lost */
    }
    ns_t took = round_trip_of(ep, packet, &record, now);
    if (took)
        note_round_trip(uet, took);
    if (to_probe && uet_is_of_way(packet->opaque))
        answered_way(ep, qp, (uint16_t)(packet->opaque - 1), marked, now);
    else if (to_probe && packet->opaque && uet->questions)
        answered_question(ep, qp, packet->opaque, upto, first, now);
    else if (to_probe && !packet->opaque && cack + 1 >= qp->una)
        answered_probe(ep, qp, NULL, upto, first, now);
    complete(ep, qp, upto, now);
    if (news && out->cc && out->cc->ops->acked)
        tell(qp, news, took ? took : CC_UNTOLD, marked, now);
    if (uet_spends(qp))
        out->cc->ops->granted(out->cc, packet->credit);
    find_overtaken(ep, qp, now);
    if (qp->una >= out->sent && !starves(ep, qp))
        out->rto_at = NS_NEVER;
    else if (news || (to_probe && !uet_is_of_way(packet->opaque))) /* that says nothing of what is missing */
        start_timer(ep, qp, now, true);
    probe_ways(ep, qp, now);
    schedule_data(ep, qp, now);
}

void uet_nacked(struct ep *ep, struct qp *qp, const struct uet_packet *packet, ns_t now)
{
    struct uet *uet = qp->uet;
    uint64_t seq = uet_unwrap_as(ep, qp->una, packet->psn);
    unsigned code = packet->code;
    bool is_ordered = uet_delivers(ep, EP_ROD), out_of_order = code == UET_NACK_ROD_OOO;
    uint64_t wanted = out_of_order ? uet_unwrap_as(ep, qp->una, packet->wanted) : seq;
    if (!uet->sent || seq >= qp->out->sent || wanted > seq || (out_of_order && !is_ordered) ||
        (!out_of_order && code != UET_NACK_TRIMMED && code != UET_NACK_TRIMMED_LAST_HOP)) {
        ep->counters.rx_refused++;
        return;
    }
    ep->counters.packet_seq_err++;
    const struct uet_sent *record = record_of(uet, seq);
    if (seq < qp->una || !record->flies || record->again != packet->again)
        return; /* it was found to be lost before, or arrived */
    if (out_of_order) {
        go_back(ep, qp, wanted < qp->una ? qp->una : wanted, now);
        start_timer(ep, qp, now, true);
        schedule_data(ep, qp, now);
        return;
    }
    uint32_t size = land(uet, seq);
    mark_lost(uet, seq);
    bool last_hop = code == UET_NACK_TRIMMED_LAST_HOP;
    struct entropy *ways = entropy_of(ep, qp, record->entropy);
    uint16_t way = way_of(ep, record->entropy);
    if (last_hop) /* its way led through the fabric well; no other would have led past the last port */
        entropy_arrived(ways, way, packet->told_marked);
    else
        entropy_cut(ways, way);
    struct cc *cc = qp->out->cc;
    if (cc && cc->ops->cut)
        cc->ops->cut(cc, size, last_hop, uet->in_flight, now);
    if (is_ordered)
        go_back(ep, qp, seq, now);
    start_timer(ep, qp, now, true);
    schedule_data(ep, qp, now);
}

void uet_credited(struct ep *ep, struct qp *qp, const struct uet_packet *packet, ns_t now)
{
    if (!uet_spends(qp) || !qp->uet->sent) {
        ep->counters.rx_refused++;
        return;
    }
    ep->counters.rx_credits++;
    qp->out->cc->ops->granted(qp->out->cc, packet->credit);
    schedule_data(ep, qp, now);
}

static uint64_t oldest_in_flight(const struct qp *qp)
{
    uint64_t oldest = qp->una;
    while (oldest < qp->out->sent && !record_of(qp->uet, oldest)->flies)
        oldest++;
    return oldest;
}

/* What to ask for: an answer tells of 64 packets at most, and has to tell of the oldest that flies, as
 * far behind the first that is missing as that may be. */
static uint64_t worth_asking_for(const struct qp *qp)
{
    const struct sending *out = qp->out;
    uint64_t oldest = oldest_in_flight(qp);
    if (oldest == out->sent)
        return qp->una;
    return oldest + UET_SACK_BITS <= out->sent ? oldest + UET_SACK_BITS - 1 : out->sent - 1;
}

/* Ask what became of what flies. */
static void probe(struct ep *ep, struct qp *qp, ns_t now)
{
    struct uet *uet = qp->uet;
    if (uet->questions) {
        uint64_t oldest = oldest_in_flight(qp);
        if (oldest < qp->out->sent)
            ask(ep, qp, oldest, now);
        return;
    }
    struct uet_answer probe = {.kind = UET_SAY_PROBE, .seq = worth_asking_for(qp)};
    if (uet->ways || ep->config.ports > 1)
        probe.entropy = uet_next_entropy(ep, qp, first_port(qp->ports), now);
    uet->probed_at = now;
    if (qp->una < qp->out->sent)
        uet_owe(ep, qp, &probe, now);
}

/* Whether the silence has lasted so long that everything is lost. */
static bool is_too_long(const struct ep *ep, const struct qp *qp)
{
    const struct sending *out = qp->out;
    if (!qp->uet->questions)
        return out->retries > 0;
    return out->retries >= PATIENCE || (ep->config.rto && out->silent >= ep->config.rto);
}

/* UUD: all that has left is over. */
static void forget_sent(struct ep *ep, struct qp *qp, ns_t now)
{
    for (uint64_t seq = qp->una; seq < qp->out->sent; seq++)
        land(qp->uet, seq);
    complete(ep, qp, qp->out->sent, now);
    schedule_data(ep, qp, now);
}

static void timeout(struct ep *ep, struct qp *qp, ns_t now)
{
    struct sending *out = qp->out;
    out->rto_at = NS_NEVER;
    if (uet_delivers(ep, EP_UUD)) {
        if (!qp->error)
            forget_sent(ep, qp, now);
        return;
    }
    bool wants_credit = uet_spends(qp) && out->next < out->posted;
    if (qp->error || (qp->una >= out->sent && !starves(ep, qp)))
        return;
    out->silent += out->rto;
    uint32_t limit = ep->config.retry_limit ? ep->config.retry_limit : 1; /* a probe is no time-out */
    if (ep->config.rto && out->silent >= ep->config.rto * limit) {
        qp_fail(ep, qp, EP_RETRY_EXCEEDED, now);
        return;
    }
    bool is_over = is_too_long(ep, qp);
    out->retries += out->retries < UINT8_MAX;
    if (is_over) {
        ep->counters.local_ack_timeout_err++;
        for (uint64_t seq = qp->una; seq < out->sent; seq++)
            lose(ep, qp, seq, now);
    }
    if (ep->config.delivery <= EP_ROD)
        probe(ep, qp, now);
    if (wants_credit || (uet_spends(qp) && qp->uet->lost_count))
        ask_for_credit(ep, qp, now);
    start_timer(ep, qp, now, false);
    probe_ways(ep, qp, now);
    schedule_data(ep, qp, now);
}

static void no_alarm(struct ep *ep, struct qp *qp, ns_t now) { (void)ep, (void)qp, (void)now; }

const struct transport UET = {
    .can_send = can_send,
    .send = send,
    .post = post,
    .link = link,
    .answer_port = uet_answer_port,
    .answer = uet_answer,
    .timeout = timeout,
    .alarm = no_alarm,
    .ports_changed = ports_changed,
    .grant = uet_grant,
};
