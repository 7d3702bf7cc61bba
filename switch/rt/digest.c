/* Digests: samples gathered into lists, and not said twice before they are acknowledged.
 *
 * As BMv2: a list goes out when it is full or its first sample has waited long enough; a sample
 * equal to one in the list, or in a list neither acknowledged nor timed out, is dropped.
 *
 * What is remembered is a queue from the oldest to the newest: lists go out one after the other and
 * all wait as long for their acknowledgement, so the oldest times out first, and a list is together.
 */
#include <stdlib.h>

#include "sw.h"

#define SEEN_MAX 65536
#define LIST_BYTES_MAX 65536
#define NONE UINT32_MAX

struct digest_seen {
    uint64_t hash; /* of the sample; 64 bits are taken to be the sample */
    ns_t until;
    uint32_t list_id, older, newer; /* free: newer is the next */
};

bool digest_init(struct sw *sw)
{
    uint32_t n = sw->program->n_digests;
    sw->digests = calloc(n ? n : 1, sizeof *sw->digests);
    for (uint32_t i = 0; sw->digests && i < n; i++)
        sw->digests[i].sent_free = sw->digests[i].oldest = sw->digests[i].newest = NONE;
    return sw->digests != NULL;
}

static void forget_all(struct sw_digest *d)
{
    index_free(&d->seen);
    free(d->sent);
    free(d->samples);
    d->sent = NULL;
    d->samples = NULL;
    d->sent_used = d->sent_room = d->n_samples = 0;
    d->sent_free = d->oldest = d->newest = NONE;
}

void digest_free(struct sw *sw)
{
    for (uint32_t i = 0; sw->program && sw->digests && i < sw->program->n_digests; i++)
        forget_all(&sw->digests[i]);
    free(sw->digests);
    sw->digests = NULL;
}

static void leave_queue(struct sw_digest *d, uint32_t at)
{
    struct digest_seen *s = &d->sent[at];
    *(s->older == NONE ? &d->oldest : &d->sent[s->older].newer) = s->newer;
    *(s->newer == NONE ? &d->newest : &d->sent[s->newer].older) = s->older;
}

static void join_queue(struct sw_digest *d, uint32_t at)
{
    struct digest_seen *s = &d->sent[at];
    s->older = d->newest;
    s->newer = NONE;
    *(d->newest == NONE ? &d->oldest : &d->sent[d->newest].newer) = at;
    d->newest = at;
}

static void forget(struct sw_digest *d, uint32_t at)
{
    index_remove(&d->seen, d->sent[at].hash, at);
    leave_queue(d, at);
    d->sent[at].newer = d->sent_free;
    d->sent_free = at;
    d->sent_used--;
}

/* True if the sample is new, and remembered from now on. */
static bool remember(struct sw_digest *d, uint64_t hash, ns_t now)
{
    uint64_t slot;
    if (!index_reserve(&d->seen) || d->sent_used >= SEEN_MAX)
        return false;
    for (uint32_t i = index_home(&d->seen, hash); (slot = d->seen.slots[i]) != 0;
         i = (i + 1) & d->seen.mask)
        if (d->sent[index_position(slot)].hash == hash) {
            struct digest_seen *s = &d->sent[index_position(slot)];
            if (s->until > now)
                return false;
            s->until = SW_NEVER;
            s->list_id = d->list_id;
            leave_queue(d, index_position(slot));
            join_queue(d, index_position(slot));
            return true;
        }
    if (d->sent_free == NONE) {
        uint32_t room = d->sent_room ? d->sent_room * 2 : 16;
        struct digest_seen *sent = realloc(d->sent, room * sizeof *sent);
        if (!sent)
            return false;
        d->sent = sent;
        for (uint32_t i = room; i-- > d->sent_room;) {
            sent[i].newer = d->sent_free;
            d->sent_free = i;
        }
        d->sent_room = room;
    }
    uint32_t at = d->sent_free;
    d->sent_free = d->sent[at].newer;
    d->sent[at] = (struct digest_seen){.hash = hash, .until = SW_NEVER, .list_id = d->list_id};
    join_queue(d, at);
    index_put(&d->seen, hash, at);
    d->sent_used++;
    return true;
}

static void send_list(struct sw *sw, uint32_t digest, ns_t now)
{
    struct sw_digest *d = &sw->digests[digest];
    uint32_t size = sw->program->digests[digest].cell_bytes;
    struct event_head head = {
        .kind = EVENT_DIGEST,
        .body = d->n_samples * size,
        .time = now,
        .a = digest,
        .b = d->list_id,
        .c = d->n_samples,
        .d = sw->loads,
    };
    event_put(&sw->events, &head, d->samples);
    for (uint32_t i = d->newest; i != NONE && d->sent[i].list_id == d->list_id;
         i = d->sent[i].older)
        d->sent[i].until = d->ack_timeout ? now + d->ack_timeout : now;
    d->n_samples = 0;
    d->list_id++;
}

void digest_sample(struct sw *sw, uint32_t digest, const void *phv, ns_t now)
{
    if (digest >= sw->program->n_digests || !sw->digests[digest].enabled)
        return;
    struct sw_digest *d = &sw->digests[digest];
    uint32_t size = sw->program->digests[digest].cell_bytes;
    uint8_t *sample = d->samples + (size_t)d->n_samples * size;
    sw->program->digest(digest, phv, sample);
    uint64_t word, hash = 0;
    for (uint32_t i = 0; i < size; i += 8) { /* samples are padded to eight bytes */
        memcpy(&word, sample + i, 8);
        uint64_t both[2] = {hash, word};
        hash = sw_mix(both, 2);
    }
    if (!remember(d, hash, now))
        return;
    if (!d->n_samples++)
        d->first_ns = now;
    if (d->n_samples >= d->max_list)
        send_list(sw, digest, now);
}

ns_t digest_service(struct sw *sw, ns_t now)
{
    ns_t wake = SW_NEVER;
    for (uint32_t i = 0; i < sw->program->n_digests; i++) {
        struct sw_digest *d = &sw->digests[i];
        if (d->n_samples && d->first_ns + d->max_timeout <= now)
            send_list(sw, i, now);
        else if (d->n_samples && d->first_ns + d->max_timeout < wake)
            wake = d->first_ns + d->max_timeout;
        while (d->oldest != NONE && d->sent[d->oldest].until <= now)
            forget(d, d->oldest);
        if (d->oldest != NONE && d->sent[d->oldest].until < wake)
            wake = d->sent[d->oldest].until;
    }
    return wake;
}

bool digest_configure(struct sw *sw, uint32_t digest, bool enabled, ns_t max_timeout,
                      uint32_t max_list, ns_t ack_timeout)
{
    struct sw_digest *d = &sw->digests[digest];
    uint32_t size = sw->program->digests[digest].cell_bytes;
    uint32_t most = LIST_BYTES_MAX / (size ? size : 1);
    forget_all(d);
    d->enabled = enabled;
    d->max_timeout = max_timeout;
    d->ack_timeout = ack_timeout;
    d->max_list = max_list && max_list < most ? max_list : most;
    if (!enabled)
        return true;
    d->samples = calloc(d->max_list, size);
    d->enabled = d->samples != NULL;
    return d->enabled;
}

void digest_ack(struct sw *sw, uint32_t digest, uint32_t list_id)
{
    struct sw_digest *d = &sw->digests[digest];
    uint32_t at = d->oldest;
    if (list_id == d->list_id)
        return; /* it was not sent yet */
    while (at != NONE && d->sent[at].list_id != list_id)
        at = d->sent[at].newer;
    while (at != NONE && d->sent[at].list_id == list_id) {
        uint32_t newer = d->sent[at].newer;
        forget(d, at);
        at = newer;
    }
}
