/* Link-level retry (LLR): one hop loses nothing, and keeps the order, whatever its cable does.
 *
 * It lies between a port and its cable, at both ends of it; who sends and who receives is told here
 * by direction. Every frame gets a number and is kept until the other end has it:
 *
 *     [12: MAC addresses][2: 0x88b6][1: LLR_NUMBERED][3: number][the frame from its type on]
 *     [12: zeros][2: 0x88b6][1: LLR_ANSWER][3: next expected][3: from][3: to]
 *
 * The receiver hands on what comes in order. It answers when enough has come, after a while in any
 * case, and at once when something is missing: from (included) to (excluded). Then either everything
 * from there on is sent again (go-back-N, as Ultra Ethernet's LLR does), or what is missing alone
 * (selective), and the receiver keeps what came behind the gap. What nobody answers, because the last
 * frames or the answers were lost, is sent again after a time-out.
 *
 * A number goes round at 2^24; at most LLR_WINDOW frames are under way. On a real link all of this
 * takes the place of the preamble, or of idle symbols (control ordered sets); so a frame takes no
 * longer than without it, and an answer no longer than its own bytes and a gap.
 *
 * After a model, not bit by bit: Ultra Ethernet Specification 1.0, Link Layer; SAI's port LLR profile
 * has the same knobs (bytes outstanding, replay timer, spacing of control ordered sets).
 */
#pragma once

#include "books.h"

#define LLR_WINDOW 8192u
#define LLR_ANSWER_BYTES 24u

struct llr_config {
    bytes_t room;      /* that may be kept; 0: no retry on this link */
    ns_t timeout;
    bytes_t ack_every; /* bytes that are worth an answer */
    uint64_t selective;
};

enum llr_count { /* in the order of cells of link_counts */
    LLR_REPLAYED,  /* frames sent again */
    LLR_ANSWERS,  /* answers sent */
    LLR_MISSED,    /* those of them that say what is missing */
    LLR_TIMEOUTS,
    LLR_UNFIT,     /* frames that came again, or out of turn, and went no further */
    LLR_SPOILT,    /* frames whose FCS was wrong */
    LLR_STRANGE,   /* frames and answers that make no sense here */
    LLR_FULL,      /* times at which no more could be kept, and the port stood still */
    LLR_COUNTS,
};

struct llr_frame {
    uint8_t *bytes; /* NULL: nothing here */
    uint32_t len, absent;
    ns_t sent_at;
    bool again;
};

struct llr {
    struct llr_config config;
    uint64_t *counts[LLR_COUNTS]; /* cells of a register; or `own` */
    uint64_t own[LLR_COUNTS];
    /* Sending: numbers from `base` up to `next` are under way. */
    struct llr_frame *sent;
    uint32_t base, next, n_again, again_from;
    bytes_t outstanding;
    ns_t again_at; /* since when there is something to be sent again */
    bool was_full;
    /* Receiving. */
    struct llr_frame *kept; /* selective: what came behind a gap */
    uint32_t expected, high; /* high: behind the highest number seen */
    uint32_t last;           /* the number seen last */
    bool is_missing;         /* go-back-N: that was said, and it has not come */
    uint32_t from, to;       /* of what is to be said: missing; equal: nothing */
    bytes_t unanswered;
    ns_t answer_at;
    /* For the books: what was put into the link beyond the frames of the port, and which of these it
     * could not put there when their turn came; what came out of it and did not reach the port; of the
     * numbers, bytes alone. */
    struct port_count added[CLASSES], lost[CLASSES], taken[CLASSES], held[CLASSES];
};

struct llr *llr_new(const struct llr_config *config); /* NULL when memory is out */
void llr_free(struct llr *llr);                       /* NULL is fine */

/* Sending. Give a frame of a port a number, and keep it; if that cannot be, no number. */
uint32_t llr_number(struct llr *llr, const uint8_t *frame, uint32_t len, uint32_t absent, ns_t now);
uint32_t llr_no_number(const struct llr *llr);
const struct llr_frame *llr_find(const struct llr *llr, uint32_t number); /* or NULL */
/* For the books: the port handed over a frame, which went into the link, or will when nobody answers;
 * and one that the link sent beyond those. */
void llr_handed(struct llr *llr, const struct llr_frame *frame, bool went);
void llr_added(struct llr *llr, const uint8_t *frame, uint32_t len, uint32_t absent);
/* Whether no more can be kept for now. */
bool llr_is_full(struct llr *llr);
/* What is to be sent before any frame of a port, and since when, or NULL; the caller's until the next
 * call. */
const struct llr_frame *llr_next(struct llr *llr, ns_t now, ns_t *since);
/* When there is something to be sent; SW_NEVER. */
ns_t llr_due(const struct llr *llr);

/* Receiving. What becomes of a frame that came out of the cable. */
enum llr_fate { LLR_PASSES, LLR_STAYS };
/* One that passes lost its number: *frame and *len are what it was. */
enum llr_fate llr_take(struct llr *llr, uint8_t *frame, uint32_t *len, uint32_t absent, ns_t now);
/* After one passed: the next that was kept and is in turn now. The caller's to free (bytes). */
bool llr_give(struct llr *llr, struct llr_frame *frame);
/* Something came of which the FCS was wrong. */
void llr_spoilt(struct llr *llr, ns_t now);
