/* A direction of a cable between two switches of one process, in memory.
 *
 * Frames lie one behind the other until they are due, each behind a head that says when that is. Who
 * puts one in and who takes it out are the same thread. Of its memory only as much is touched as is
 * needed at once: when the last frame has left, the next is put where the first was.
 *
 *   bytes  | taken | head, frame | head, frame | free |      or, where the end was reached:
 *          | head, frame | free | taken | head, frame | unused |
 */
#pragma once

#include "base.h"

#define SHORT_CABLE_BYTES (1u << 18) /* more has to go another way */

struct short_frame {
    ns_t due;
    uint32_t len, room; /* room: up to the next one's head */
};

struct short_cable {
    uint8_t *bytes; /* NULL until the first frame comes */
    uint32_t first, end, last; /* last: where the part at the end of the memory ends */
    uint32_t count;
};

void short_cable_free(struct short_cable *cable);
/* Put a frame in; false if there is no room. */
bool short_cable_put(struct short_cable *cable, const uint8_t *frame, uint32_t len, ns_t due);
/* The frame that was put in first, behind its head; it stays until it is dropped. NULL: none. */
const struct short_frame *short_cable_first(const struct short_cable *cable);
void short_cable_drop(struct short_cable *cable);
