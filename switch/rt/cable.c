#include "cable.h"

#include <stdlib.h>

struct cable *cable_new(uint64_t seed)
{
    struct cable *cable = calloc(1, sizeof *cable);
    if (cable)
        cable->random = seed * 2 + 1;
    return cable;
}

void cable_free(struct cable *cable)
{
    for (struct cable_frame *frame = cable ? cable->head : NULL, *next; frame; frame = next) {
        next = frame->next;
        free(frame);
    }
    free(cable);
}

static bool by_lot(struct cable *cable, uint32_t chance)
{
    if (!chance)
        return false;
    cable->random ^= cable->random << 13;
    cable->random ^= cable->random >> 7;
    cable->random ^= cable->random << 17;
    return (uint32_t)(cable->random * 0x2545f4914f6cdd1du >> 32) < chance;
}

static bool keep(struct cable *cable, const uint8_t *frame, uint32_t len, uint32_t absent, ns_t due)
{
    struct cable_frame *kept = malloc(sizeof *kept + len);
    if (!kept)
        return false;
    *kept = (struct cable_frame){.due = due, .len = len, .absent = absent};
    memcpy(kept->bytes, frame, len);
    if (cable->head && cable->tail->due > due)
        kept->due = cable->tail->due; /* `late` became less meanwhile */
    if (cable->head)
        cable->tail->next = kept;
    else
        cable->head = kept;
    cable->tail = kept;
    return true;
}

enum cable_fate cable_take(struct cable *cable, const uint8_t *frame, uint32_t len,
                           uint32_t absent, ns_t now)
{
    const struct cable_faults *faults = &cable->faults;
    if (by_lot(cable, faults->corrupt)) {
        count_bytes(&cable->lost[frame_class(frame, len)], len + absent);
        return CABLE_LOSES;
    }
    if (by_lot(cable, faults->reorder) && keep(cable, frame, len, absent, now + faults->late - cable->ahead))
        return CABLE_DELAYS;
    if (!by_lot(cable, faults->duplicate))
        return CABLE_PASSES;
    count_bytes(&cable->added[frame_class(frame, len)], len + absent);
    return CABLE_DOUBLES;
}

struct cable_frame *cable_give(struct cable *cable, ns_t now)
{
    struct cable_frame *frame = cable->head;
    if (!frame || frame->due > now)
        return NULL;
    cable->head = frame->next;
    return frame;
}

ns_t cable_due(const struct cable *cable) { return cable->head ? cable->head->due : SW_NEVER; }

void cable_lose(struct cable *cable, const struct cable_frame *frame)
{
    count_bytes(&cable->lost[frame_class(frame->bytes, frame->len)], frame->len + frame->absent);
}
