#include "intake.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_FRAME 60 /* bytes of the wire: what fills a buffer with the most of them */

struct waiting { /* before a frame's bytes */
    ns_t due;
    uint32_t stored, wire;
};

const char *intake_problem(const struct intake_config *config)
{
    if (config->rate && config->rate < 1000000)
        return "a host takes at least 1 Mb/s";
    if (config->rate && (config->room > 1u << 30 || config->xoff >= config->room ||
                         config->xon > config->xoff))
        return "a receive buffer pauses below its size, at most 1 GiB, and goes on no later";
    return NULL;
}

static size_t rounded(size_t bytes) { return (bytes + 7) & ~(size_t)7; }

bool intake_init(struct intake *intake, const struct intake_config *config)
{
    *intake = (struct intake){.config = *config};
    if (!config->rate)
        return true;
    /* As much as frames of any size can take, and a largest one that does not fit at the end. */
    size_t frames = config->room / LEAST_FRAME + 1;
    intake->size = rounded(config->room + frames * (sizeof(struct waiting) + 8) + (1u << 16));
    intake->end = intake->size;
    return (intake->ring = malloc(intake->size)) != NULL;
}

void intake_free(struct intake *intake) { free(intake->ring); }

/* Room in one piece for so many bytes, or NULL. Unless nothing is held, tail never meets head. */
static uint8_t *room_for(struct intake *intake, size_t bytes)
{
    if (!intake->held) {
        intake->head = intake->tail = 0;
        intake->end = intake->size;
    }
    if (intake->tail < intake->head)
        return intake->tail + bytes < intake->head ? intake->ring + intake->tail : NULL;
    if (intake->size - intake->tail >= bytes)
        return intake->ring + intake->tail;
    if (bytes >= intake->head)
        return NULL;
    intake->end = intake->tail;
    intake->tail = 0;
    return intake->ring;
}

bool intake_put(struct intake *intake, const uint8_t *frame, uint32_t stored, uint32_t wire,
                bool may_be_lost, ns_t now)
{
    const struct intake_config *config = &intake->config;
    size_t bytes = rounded(sizeof(struct waiting) + stored);
    if (wire > config->room - intake->held || (may_be_lost && intake->held > config->xoff))
        return false;
    uint8_t *at = room_for(intake, bytes);
    if (!at)
        return false;
    ps_t from = ps_of_ns(now);
    if (intake->taken_at < from)
        intake->taken_at = from;
    intake->taken_at += ps_for_bytes(wire, config->rate);
    struct waiting waiting = {ns_after_ps(intake->taken_at), stored, wire};
    memcpy(at, &waiting, sizeof waiting);
    memcpy(at + sizeof waiting, frame, stored);
    intake->tail += bytes;
    intake->held += wire;
    if (intake->held > config->xoff)
        intake->full_enough = true;
    return true;
}

static struct waiting first(const struct intake *intake)
{
    struct waiting waiting;
    memcpy(&waiting, intake->ring + intake->head, sizeof waiting);
    return waiting;
}

const uint8_t *intake_take(struct intake *intake, ns_t now, uint32_t *stored, uint32_t *wire)
{
    if (intake_due(intake) > now)
        return NULL;
    struct waiting waiting = first(intake);
    const uint8_t *frame = intake->ring + intake->head + sizeof waiting;
    *stored = waiting.stored;
    *wire = waiting.wire;
    intake->head += rounded(sizeof waiting + waiting.stored);
    if (intake->head == intake->end) {
        intake->head = 0;
        intake->end = intake->size;
    }
    intake->held -= waiting.wire;
    if (intake->held <= intake->config.xon)
        intake->full_enough = false;
    return frame;
}

ns_t intake_due(const struct intake *intake) { return intake->held ? first(intake).due : NS_NEVER; }
