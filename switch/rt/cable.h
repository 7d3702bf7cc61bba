/* A bad cable: frames that it corrupts, doubles, or lets overtake each other.
 *
 * It lies between a port and whatever the port sends to or receives from, so it is the same on real
 * interfaces and in a simulator. A corrupted frame is gone: whoever receives it sees a wrong FCS. One
 * that is overtaken arrives `late` after its turn, those behind it in theirs. All of it is counted by
 * class, as the books of the link want it.
 */
#pragma once

#include "books.h"

enum cable_way { CABLE_IN, CABLE_OUT, CABLE_WAYS };

struct cable_faults { /* chances, in 2^32; all zero: a good cable again */
    uint32_t corrupt, duplicate, reorder;
    uint32_t unused;
    ns_t late;
};

struct cable_frame {
    struct cable_frame *next;
    ns_t due;
    uint32_t len, absent;
    uint8_t bytes[];
};

struct cable {
    struct cable_faults faults;
    ns_t ahead; /* of their arrival, late frames are given: so long a good cable has them then */
    uint64_t random;
    struct port_count lost[CLASSES], added[CLASSES];
    struct cable_frame *head, *tail; /* that wait to arrive late */
};

enum cable_fate { CABLE_PASSES, CABLE_LOSES, CABLE_DOUBLES, CABLE_DELAYS };

struct cable *cable_new(uint64_t seed); /* NULL when memory is out */
void cable_free(struct cable *cable);   /* NULL is fine */

/* What becomes of a frame. One that is lost or doubled is counted; one that is late is kept, and
 * passes after all if memory is out. */
enum cable_fate cable_take(struct cable *cable, const uint8_t *frame, uint32_t len,
                           uint32_t absent, ns_t now);
/* The first frame whose time has come, which is then the caller's to free; or NULL. */
struct cable_frame *cable_give(struct cable *cable, ns_t now);
ns_t cable_due(const struct cable *cable); /* when the next is; SW_NEVER */
/* A frame that was kept cannot arrive any more. */
void cable_lose(struct cable *cable, const struct cable_frame *frame);
