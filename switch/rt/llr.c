/* Numbering, keeping, asking again. All numbers are counted on in 32 bits; 24 of them travel. */
#include "llr.h"

#include <stdlib.h>

#define TYPE_AT 12u
#define KIND_AT 14u
#define NUMBER_AT 15u
#define FROM_AT 18u
#define TO_AT 21u
#define NUMBER_MASK 0xFFFFFFu

enum { LLR_FRAME_KIND = LLR_NUMBERED, LLR_ANSWER_KIND = 2 };

struct llr *llr_new(const struct llr_config *config)
{
    struct llr *llr = calloc(1, sizeof *llr);
    if (!llr)
        return NULL;
    llr->config = *config;
    llr->answer_at = SW_NEVER;
    llr->last = UINT32_MAX;
    for (unsigned i = 0; i < LLR_COUNTS; i++)
        llr->counts[i] = &llr->own[i];
    llr->sent = calloc(LLR_WINDOW, sizeof *llr->sent);
    llr->kept = calloc(LLR_WINDOW, sizeof *llr->kept);
    if (!llr->sent || !llr->kept) {
        llr_free(llr);
        return NULL;
    }
    return llr;
}

void llr_free(struct llr *llr)
{
    for (unsigned i = 0; llr && i < LLR_WINDOW; i++) {
        if (llr->sent)
            free(llr->sent[i].bytes);
        if (llr->kept)
            free(llr->kept[i].bytes);
    }
    if (llr) {
        free(llr->sent);
        free(llr->kept);
    }
    free(llr);
}

static void count(struct llr *llr, enum llr_count what) { ++*llr->counts[what]; }

static struct llr_frame *slot(struct llr_frame *frames, uint32_t number)
{
    return &frames[number % LLR_WINDOW];
}

/* The number near `around` of which the low 24 bits are these. */
static uint32_t whole(uint32_t low, uint32_t around)
{
    return around + (uint32_t)((int32_t)((low - around) << 8) >> 8);
}

static bool is_ours(const uint8_t *frame, uint32_t len)
{
    return len >= NUMBER_AT + 3 && frame[TYPE_AT] == LLR_TYPE_HIGH && frame[TYPE_AT + 1] == LLR_TYPE_LOW;
}

/* Sending */

const struct llr_frame *llr_find(const struct llr *llr, uint32_t number)
{
    const struct llr_frame *at = slot(llr->sent, number);
    return number - llr->base < llr->next - llr->base ? at : NULL;
}

uint32_t llr_number(struct llr *llr, const uint8_t *frame, uint32_t len, uint32_t absent, ns_t now)
{
    struct llr_frame *at = slot(llr->sent, llr->next);
    if (len < TYPE_AT + 2 || llr->next - llr->base >= LLR_WINDOW)
        return llr_no_number(llr);
    uint8_t *bytes = malloc(len + LLR_TAG);
    if (!bytes)
        return llr_no_number(llr);
    memcpy(bytes, frame, TYPE_AT);
    bytes[TYPE_AT] = LLR_TYPE_HIGH;
    bytes[TYPE_AT + 1] = LLR_TYPE_LOW;
    bytes[KIND_AT] = LLR_FRAME_KIND;
    be_store(bytes + NUMBER_AT, 3, llr->next & NUMBER_MASK);
    memcpy(bytes + TYPE_AT + LLR_TAG, frame + TYPE_AT, len - TYPE_AT);
    *at = (struct llr_frame){bytes, len + LLR_TAG, absent, now, false};
    llr->outstanding += at->len + absent;
    return llr->next++;
}

uint32_t llr_no_number(const struct llr *llr) { return llr->base - 1; }

void llr_handed(struct llr *llr, const struct llr_frame *frame, bool went)
{
    unsigned class = frame_class(frame->bytes, frame->len);
    if (went)
        llr->added[class].bytes += LLR_TAG;
    else
        count_bytes(&llr->lost[class], frame->len - LLR_TAG + frame->absent);
}

void llr_added(struct llr *llr, const uint8_t *frame, uint32_t len, uint32_t absent)
{
    count_bytes(&llr->added[frame_class(frame, len)], len + absent);
}

bool llr_is_full(struct llr *llr)
{
    bool is_full = llr->outstanding >= llr->config.room || llr->next - llr->base >= LLR_WINDOW / 2;
    if (is_full && !llr->was_full)
        count(llr, LLR_FULL);
    return llr->was_full = is_full;
}

/* Everything before this number has come. */
static void forget(struct llr *llr, uint32_t number)
{
    for (; llr->base != number; llr->base++) {
        struct llr_frame *at = slot(llr->sent, llr->base);
        llr->outstanding -= at->len + at->absent;
        llr->n_again -= at->again;
        free(at->bytes);
        *at = (struct llr_frame){0};
    }
    if ((int32_t)(llr->again_from - llr->base) < 0)
        llr->again_from = llr->base;
}

static void send_again(struct llr *llr, uint32_t from, uint32_t to, ns_t now)
{
    if (!llr->n_again)
        llr->again_at = now;
    if (!llr->n_again || (int32_t)(from - llr->again_from) < 0)
        llr->again_from = from;
    for (uint32_t number = from; number != to; number++) {
        struct llr_frame *at = slot(llr->sent, number);
        llr->n_again += !at->again;
        at->again = true;
    }
}

static void heed(struct llr *llr, const uint8_t *answer, ns_t now)
{
    uint32_t under_way = llr->next - llr->base;
    uint32_t expected = whole((uint32_t)be_load(answer + NUMBER_AT, 3), llr->base);
    uint32_t from = whole((uint32_t)be_load(answer + FROM_AT, 3), llr->base);
    uint32_t to = whole((uint32_t)be_load(answer + TO_AT, 3), llr->base);
    if (expected - llr->base > under_way) { /* an older one is none; there is none so old */
        if (llr->base - expected > LLR_WINDOW)
            count(llr, LLR_STRANGE);
        return;
    }
    forget(llr, expected);
    under_way = llr->next - llr->base;
    if (from == to || (int32_t)(from - llr->base) < 0)
        return;
    if (to - llr->base > under_way) /* of what was guessed to be missing, it may not yet be sent */
        to = llr->next;
    if (from - llr->base < under_way && (int32_t)(to - from) > 0)
        send_again(llr, from, llr->config.selective ? to : llr->next, now);
}

static const struct llr_frame *say(struct llr *llr)
{
    static _Thread_local uint8_t bytes[LLR_ANSWER_BYTES];
    static _Thread_local struct llr_frame answer;
    memset(bytes, 0, sizeof bytes);
    bytes[TYPE_AT] = LLR_TYPE_HIGH;
    bytes[TYPE_AT + 1] = LLR_TYPE_LOW;
    bytes[KIND_AT] = LLR_ANSWER_KIND;
    be_store(bytes + NUMBER_AT, 3, llr->expected & NUMBER_MASK);
    be_store(bytes + FROM_AT, 3, llr->from & NUMBER_MASK);
    be_store(bytes + TO_AT, 3, llr->to & NUMBER_MASK);
    count(llr, LLR_ANSWERS);
    if (llr->from != llr->to)
        count(llr, LLR_MISSED);
    llr->from = llr->to = llr->expected;
    llr->unanswered = 0;
    llr->answer_at = SW_NEVER;
    answer = (struct llr_frame){bytes, sizeof bytes, 0, 0, false};
    return &answer;
}

/* When the oldest frame under way has waited too long. */
static ns_t overdue_at(const struct llr *llr)
{
    if (llr->base == llr->next)
        return SW_NEVER;
    return llr->sent[llr->base % LLR_WINDOW].sent_at + llr->config.timeout;
}

const struct llr_frame *llr_next(struct llr *llr, ns_t now, ns_t *since)
{
    const struct llr_frame *frame = NULL;
    if (!llr->n_again && overdue_at(llr) <= now) {
        count(llr, LLR_TIMEOUTS);
        send_again(llr, llr->base, llr->config.selective ? llr->base + 1 : llr->next, now);
    }
    if (llr->answer_at <= now) {
        *since = llr->answer_at;
        frame = say(llr);
    } else if (llr->n_again) {
        *since = llr->again_at;
        struct llr_frame *at;
        while (!(at = slot(llr->sent, llr->again_from))->again)
            llr->again_from++;
        at->again = false;
        at->sent_at = now;
        llr->n_again--;
        llr->again_from++;
        count(llr, LLR_REPLAYED);
        frame = at;
    }
    return frame;
}

ns_t llr_due(const struct llr *llr)
{
    if (llr->n_again)
        return 0;
    ns_t overdue = overdue_at(llr);
    return llr->answer_at < overdue ? llr->answer_at : overdue;
}

/* Receiving */

static void answer_by(struct llr *llr, ns_t at)
{
    if (at < llr->answer_at)
        llr->answer_at = at;
}

static void miss(struct llr *llr, uint32_t from, uint32_t to, ns_t now)
{
    bool is_first = llr->from == llr->to;
    if (is_first || (int32_t)(from - llr->from) < 0)
        llr->from = from;
    if (is_first || (int32_t)(to - llr->to) > 0)
        llr->to = to;
    llr->is_missing = true;
    answer_by(llr, now);
}

static enum llr_fate take_out(struct llr *llr, const uint8_t *frame, uint32_t len, uint32_t absent)
{
    count_bytes(&llr->taken[frame_class(frame, len)], len + absent);
    return LLR_STAYS;
}

static bool keep(struct llr *llr, uint32_t number, const uint8_t *frame, uint32_t len,
                 uint32_t absent)
{
    struct llr_frame *at = slot(llr->kept, number);
    if (at->bytes || !(at->bytes = malloc(len)))
        return false;
    memcpy(at->bytes, frame, len);
    at->len = len;
    at->absent = absent;
    count_bytes(&llr->held[frame_class(frame, len)], len + absent);
    return true;
}

static void untag(struct llr *llr, uint8_t *frame, uint32_t *len)
{
    llr->taken[frame_class(frame, *len)].bytes += LLR_TAG;
    memmove(frame + TYPE_AT, frame + TYPE_AT + LLR_TAG, *len - TYPE_AT - LLR_TAG);
    *len -= LLR_TAG;
}

static void in_order(struct llr *llr, bytes_t bytes, ns_t now)
{
    llr->expected++;
    if ((int32_t)(llr->high - llr->expected) < 0)
        llr->high = llr->expected;
    llr->is_missing = llr->config.selective && llr->high != llr->expected;
    llr->unanswered += bytes;
    if (llr->unanswered >= llr->config.ack_every)
        answer_by(llr, now);
    else
        answer_by(llr, now + llr->config.timeout / 4);
}

static enum llr_fate take_frame(struct llr *llr, uint8_t *frame, uint32_t *len, uint32_t absent,
                                ns_t now)
{
    uint32_t number = whole((uint32_t)be_load(frame + NUMBER_AT, 3), llr->expected);
    int32_t ahead = (int32_t)(number - llr->expected);
    bool comes_again = (int32_t)(number - llr->last) <= 0; /* a replay has begun since */
    bool is_near = ahead >= -(int32_t)LLR_WINDOW && ahead < (int32_t)LLR_WINDOW;
    if (is_near)
        llr->last = number;
    if (ahead == 0) {
        in_order(llr, *len + absent, now);
        untag(llr, frame, len);
        return LLR_PASSES;
    }
    if (!is_near) {
        count(llr, LLR_STRANGE);
    } else if (ahead < 0) { /* it has come before, and its answer did not */
        answer_by(llr, now);
        count(llr, LLR_UNFIT);
    } else if (!llr->config.selective) {
        if (!llr->is_missing || comes_again)
            miss(llr, llr->expected, number, now);
        count(llr, LLR_UNFIT);
    } else {
        if ((int32_t)(number - llr->high) > 0)
            miss(llr, llr->high, number, now);
        if ((int32_t)(number - llr->high) >= 0)
            llr->high = number + 1;
        if (keep(llr, number, frame, *len, absent))
            return LLR_STAYS;
        count(llr, LLR_UNFIT);
    }
    return take_out(llr, frame, *len, absent);
}

enum llr_fate llr_take(struct llr *llr, uint8_t *frame, uint32_t *len, uint32_t absent, ns_t now)
{
    if (is_ours(frame, *len) && frame[KIND_AT] == LLR_FRAME_KIND && *len >= TYPE_AT + LLR_TAG + 2)
        return take_frame(llr, frame, len, absent, now);
    if (is_ours(frame, *len) && frame[KIND_AT] == LLR_ANSWER_KIND && *len >= LLR_ANSWER_BYTES)
        heed(llr, frame, now);
    else
        count(llr, LLR_STRANGE);
    return take_out(llr, frame, *len, absent);
}

bool llr_give(struct llr *llr, struct llr_frame *frame)
{
    struct llr_frame *at = slot(llr->kept, llr->expected);
    if (!at->bytes)
        return false;
    *frame = *at;
    *at = (struct llr_frame){0};
    struct port_count *held = &llr->held[frame_class(frame->bytes, frame->len)];
    held->packets--;
    held->bytes -= frame->len + frame->absent;
    in_order(llr, frame->len + frame->absent, 0);
    untag(llr, frame->bytes, &frame->len);
    return true;
}

void llr_spoilt(struct llr *llr, ns_t now)
{
    count(llr, LLR_SPOILT);
    /* Most likely it was the next; if not, nothing is there yet to be sent again. */
    if (llr->config.selective) {
        miss(llr, llr->high, llr->high + 1, now);
        llr->high++;
    } else if (!llr->is_missing) {
        llr->last = llr->expected;
        miss(llr, llr->expected, llr->expected + 1, now);
    }
}
