#include "rx_buffer.h"

#include "invariant.h"

#include <stdlib.h>
#include <string.h>

#define MIN_FRAME 60 /* bytes of the wire: what fills a buffer with the most of them */

struct waiting { /* before a frame's bytes */
    ns_t due;
    uint32_t stored, wire;
};

const char *rx_buffer_problem(const struct rx_buffer_config *config)
{
    if (config->rate && config->rate < 1000000)
        return "a host takes at least 1 Mb/s";
    if (config->rate && (config->room > 1u << 30 || config->xoff >= config->room ||
                         config->xon > config->xoff))
        return "a receive buffer pauses below its size, at most 1 GiB, and goes on no later";
    return NULL;
}

static size_t rounded(size_t bytes) { return (bytes + 7) & ~(size_t)7; }

bool rx_buffer_init(struct rx_buffer *rx_buffer, const struct rx_buffer_config *config)
{
    *rx_buffer = (struct rx_buffer){.config = *config};
    if (!config->rate)
        return true;
    /* As much as frames of any size can take, and a largest one that does not fit at the end. */
    size_t frames = config->room / MIN_FRAME + 1;
    rx_buffer->size = rounded(config->room + frames * (sizeof(struct waiting) + 8) + (1u << 16));
    rx_buffer->end = rx_buffer->size;
    return (rx_buffer->ring = malloc(rx_buffer->size)) != NULL;
}

void rx_buffer_free(struct rx_buffer *rx_buffer) { free(rx_buffer->ring); }

/* Room in one piece for so many bytes, or NULL. Unless nothing is held, tail never meets head. */
static uint8_t *room_for(struct rx_buffer *rx_buffer, size_t bytes)
{
    if (!rx_buffer->held) {
        rx_buffer->head = rx_buffer->tail = 0;
        rx_buffer->end = rx_buffer->size;
    }
    if (rx_buffer->tail < rx_buffer->head)
        return rx_buffer->tail + bytes < rx_buffer->head ? rx_buffer->ring + rx_buffer->tail : NULL;
    if (rx_buffer->size - rx_buffer->tail >= bytes)
        return rx_buffer->ring + rx_buffer->tail;
    if (bytes >= rx_buffer->head)
        return NULL;
    rx_buffer->end = rx_buffer->tail;
    rx_buffer->tail = 0;
    return rx_buffer->ring;
}

bool rx_buffer_put(struct rx_buffer *rx_buffer, const uint8_t *frame, uint32_t stored, uint32_t wire,
                bool may_be_lost, ns_t now)
{
    const struct rx_buffer_config *config = &rx_buffer->config;
    size_t bytes = rounded(sizeof(struct waiting) + stored);
    if (wire > config->room - rx_buffer->held || (may_be_lost && rx_buffer->held > config->xoff))
        return false;
    uint8_t *at = room_for(rx_buffer, bytes);
    if (!at)
        return false;
    ps_t from = ps_of_ns(now);
    if (rx_buffer->taken_at < from)
        rx_buffer->taken_at = from;
    rx_buffer->taken_at += ps_for_bytes(wire, config->rate);
    struct waiting waiting = {ns_after_ps(rx_buffer->taken_at), stored, wire};
    memcpy(at, &waiting, sizeof waiting);
    memcpy(at + sizeof waiting, frame, stored);
    rx_buffer->tail += bytes;
    rx_buffer->held += wire;
    if (rx_buffer->held > config->xoff)
        rx_buffer->full_enough = true;
    return true;
}

static struct waiting first(const struct rx_buffer *rx_buffer)
{
    struct waiting waiting;
    memcpy(&waiting, rx_buffer->ring + rx_buffer->head, sizeof waiting);
    return waiting;
}

const uint8_t *rx_buffer_take(struct rx_buffer *rx_buffer, ns_t now, uint32_t *stored, uint32_t *wire)
{
    if (rx_buffer_due(rx_buffer) > now)
        return NULL;
    struct waiting waiting = first(rx_buffer);
    const uint8_t *frame = rx_buffer->ring + rx_buffer->head + sizeof waiting;
    *stored = waiting.stored;
    *wire = waiting.wire;
    rx_buffer->head += rounded(sizeof waiting + waiting.stored);
    if (rx_buffer->head == rx_buffer->end) {
        rx_buffer->head = 0;
        rx_buffer->end = rx_buffer->size;
    }
    INVARIANT(rx_buffer->held >= waiting.wire && rx_buffer->head <= rx_buffer->end);
    rx_buffer->held -= waiting.wire;
    if (rx_buffer->held <= rx_buffer->config.xon)
        rx_buffer->full_enough = false;
    return frame;
}

ns_t rx_buffer_due(const struct rx_buffer *rx_buffer) { return rx_buffer->held ? first(rx_buffer).due : NS_NEVER; }
