/* The books of a switch: what became of every frame and of its bytes, by class.
 *
 *   received + changed = left + dropped (by reason) + held       of frames that arrived
 *   made     + changed = left + dropped (by reason) + held       of copies, and what timers made
 *
 * in frames and in bytes, for each class; `changed` is what headers pushed, popped and truncation
 * did to bytes. They are kept beside the plain account of sw.h, and what is held is counted by
 * going through the queues, so that a mistake in either shows: whoever takes stock compares them.
 *
 * A class is what anybody with a cable in hand can tell of a frame, whatever program the switch
 * runs: the precedence of its IP header, a pause frame, or neither. A packet keeps the class it
 * came with; it leaves as what it then is.
 */
#pragma once

#include "base.h"

#define CLASS_PAUSE 8 /* MAC control frames; below: the precedence of an IP header */
#define CLASS_OTHER 9
#define CLASSES 10
#define BOOK_MADE CLASSES     /* added to the class of what did not arrive but was made here */
#define BOOKS (2 * CLASSES)

struct port_count {
    uint64_t packets;
    bytes_t bytes;
};

static inline void count_bytes(struct port_count *count, bytes_t bytes)
{
    count->packets++;
    count->bytes += bytes;
}

/* A frame with a number between its addresses and its type (llr.h) is of its own class. */
#define LLR_TYPE_HIGH 0x88
#define LLR_TYPE_LOW 0xb6
#define LLR_TAG 6u     /* bytes: that type, the kind, the number */
#define LLR_NUMBERED 1 /* the kind */

static inline unsigned frame_class(const uint8_t *frame, uint32_t len)
{
    if (SW_UNLIKELY(len < 20))
        return CLASS_OTHER;
    if (SW_LIKELY(be_load(frame + 12, 2) == 0x0800))
        return frame[15] >> 5;
    if (SW_UNLIKELY(frame[12] == LLR_TYPE_HIGH && frame[13] == LLR_TYPE_LOW &&
                    frame[14] == LLR_NUMBERED && len >= 20 + LLR_TAG))
        frame += LLR_TAG;
    const uint8_t *type = frame[12] == 0x81 && frame[13] == 0x00 ? frame + 16 : frame + 12;
    if (type[0] == 0x08 && type[1] == 0x00)
        return type[3] >> 5;
    if (type[0] == 0x88 && type[1] == 0x08)
        return CLASS_PAUSE;
    return type[0] == 0x86 && type[1] == 0xdd ? (type[2] & 15u) >> 1 : CLASS_OTHER;
}

/* A line of the books, as they are told. `kind`: the class; `of`: which class it left as, why it was
 * dropped, or at which port. */
enum book {
    BOOK_IN, /* or made here */
    BOOK_CHANGED, /* bytes only, and they may be negative */
    BOOK_LEFT,
    BOOK_DROPPED,
    BOOK_HELD,
    BOOK_PORT_IN,
    BOOK_PORT_OUT,     /* handed to the port: of these may be */
    BOOK_PORT_LOST,    /* ... what it lost; all classes together */
    BOOK_PORT_WAITING, /* ... what its interface has not taken yet; all classes together */
    BOOK_CABLE_IN_LOST, /* by a bad cable (cable.h), before the port saw it; by port, and so are */
    BOOK_CABLE_IN_ADDED,
    BOOK_CABLE_IN_HELD,
    BOOK_CABLE_OUT_LOST, /* after it was handed to the port */
    BOOK_CABLE_OUT_ADDED,
    BOOK_CABLE_OUT_HELD,
    BOOK_LLR_IN_LOST,  /* the same of a link that tries again (llr.h): what did not reach the port, */
    BOOK_LLR_IN_ADDED, /* nothing, */
    BOOK_LLR_IN_HELD,
    BOOK_LLR_OUT_LOST, /* and what a bad cable took that it makes good */
    BOOK_LLR_OUT_ADDED,
    BOOK_LLR_OUT_HELD,
};
struct book_line {
    uint32_t book, kind, of, unused;
    uint64_t packets, bytes;
};

struct book_report {
    struct book_line *lines;
    uint32_t room, n; /* n: how many there are, `room` or not */
};
/* One line for each kind of `n` of which there is anything. */
static inline void book_add(struct book_report *report, enum book book, unsigned of,
                            const struct port_count *counts, unsigned n)
{
    for (unsigned kind = 0; kind < n; kind++) {
        if (!counts[kind].packets && !counts[kind].bytes)
            continue;
        if (report->n < report->room)
            report->lines[report->n] = (struct book_line){book, kind, of, 0, counts[kind].packets,
                                                          counts[kind].bytes};
        report->n++;
    }
}
