/* The ring of events. A body of all ones in `kind` marks the unused rest at the ring's end. */
#include "event.h"

#include <stdlib.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/eventfd.h>
#else
#include <fcntl.h>
#endif

#define EVENT_SKIP UINT32_MAX
#define NO_FILE INT32_MAX

/* What a reader may sleep on; where nothing runs but simulations nobody sleeps. */
static int alarm_fd(void)
{
    if (arena_is_open()) /* a file that is open now would be another one later */
        return NO_FILE;
#ifdef __linux__
    return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
#else
    return open("/dev/null", O_RDWR | O_CLOEXEC);
#endif
}

static size_t padded(size_t n) { return (n + 7) / 8 * 8; }

bool event_init(struct event_queue *q, size_t size, bool listen)
{
    memset(q, 0, sizeof *q);
    pthread_mutex_init(&q->lock, NULL);
    q->fd = -1;
    if (!listen)
        return true;
    q->ring = malloc(size);
    q->size = size;
    q->fd = alarm_fd();
    return q->ring && q->fd >= 0;
}

void event_free(struct event_queue *q)
{
    if (q->fd >= 0)
        close(q->fd);
    free(q->ring);
    pthread_mutex_destroy(&q->lock);
}

bool event_put(struct event_queue *q, const struct event_head *head, const void *body)
{
    size_t need = sizeof *head + padded(head->body);
    if (q->fd < 0)
        return false;
    pthread_mutex_lock(&q->lock);
    size_t rest = q->size - q->head;
    bool wrap = rest < need;
    bool fits = q->used + need + (wrap ? rest : 0) <= q->size;
    bool was_empty = q->used == 0;
    if (!fits) {
        q->refused++;
        pthread_mutex_unlock(&q->lock);
        return false;
    }
    if (wrap) {
        if (rest >= sizeof *head)
            memset(q->ring + q->head, 0xff, sizeof(uint32_t));
        q->used += rest;
        q->head = 0;
    }
    memcpy(q->ring + q->head, head, sizeof *head);
    if (head->body)
        memcpy(q->ring + q->head + sizeof *head, body, head->body);
    q->head = (q->head + need) % q->size;
    q->used += need;
    pthread_mutex_unlock(&q->lock);
    if (was_empty) {
        uint64_t one = 1;
        if (write(q->fd, &one, sizeof one) < 0)
            return true; /* the counter is full, so the reader is awake already */
    }
    return true;
}

size_t event_drain(struct event_queue *q, void *out, size_t room)
{
    size_t taken = 0;
    uint64_t count;
    pthread_mutex_lock(&q->lock);
    while (q->used) {
        size_t rest = q->size - q->tail;
        struct event_head head;
        if (rest >= sizeof head)
            memcpy(&head, q->ring + q->tail, sizeof head);
        if (rest < sizeof head || head.kind == EVENT_SKIP) {
            q->tail = 0;
            q->used -= rest;
            continue;
        }
        size_t size = sizeof head + padded(head.body);
        if (taken + size > room)
            break;
        memcpy((uint8_t *)out + taken, q->ring + q->tail, size);
        taken += size;
        q->tail = (q->tail + size) % q->size;
        q->used -= size;
    }
    if (!q->used && q->fd >= 0 && read(q->fd, &count, sizeof count) < 0)
        count = 0; /* nothing was signalled */
    pthread_mutex_unlock(&q->lock);
    return taken;
}
