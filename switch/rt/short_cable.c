/* A ring of bytes, in which frames are not cut. */
#include "short_cable.h"

#include <stdlib.h>

void short_cable_free(struct short_cable *cable)
{
    free(cable->bytes);
    *cable = (struct short_cable){0};
}

/* Where so many bytes are free in one piece; false if nowhere. */
static bool find_room(struct short_cable *cable, uint32_t room)
{
    if (!cable->count)
        cable->first = cable->end = 0;
    if (cable->count && cable->end <= cable->first)
        return room <= cable->first - cable->end;
    if (room <= SHORT_CABLE_BYTES - cable->end)
        return true;
    if (room > cable->first)
        return false;
    cable->last = cable->end;
    cable->end = 0;
    return true;
}

bool short_cable_put(struct short_cable *cable, const uint8_t *frame, uint32_t len, ns_t due)
{
    struct short_frame head = {due, len, (uint32_t)(sizeof head + len + 7) / 8 * 8};
    if (!cable->bytes && !(cable->bytes = malloc(SHORT_CABLE_BYTES)))
        return false;
    if (!find_room(cable, head.room))
        return false;
    memcpy(cable->bytes + cable->end, &head, sizeof head);
    memcpy(cable->bytes + cable->end + sizeof head, frame, len);
    cable->end += head.room;
    cable->count++;
    return true;
}

const struct short_frame *short_cable_first(const struct short_cable *cable)
{
    return cable->count ? (const void *)(cable->bytes + cable->first) : NULL;
}

void short_cable_drop(struct short_cable *cable)
{
    bool goes_round = cable->end <= cable->first;
    cable->first += short_cable_first(cable)->room;
    cable->count--;
    if (goes_round && cable->first == cable->last)
        cable->first = 0;
}
