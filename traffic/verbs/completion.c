/* Completion queues, and the channels by which a program sleeps until one has something.
 *
 * A program that polls in a circle would take a processor from the switches that its packets wait
 * for. So whoever finds a queue empty several times in a row sleeps for a moment of the fabric's
 * time, and is woken by what comes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rc.h"

enum { POLLS_AWAKE = 16, SLEEP_FABRIC_NS = 50, SLEEP_MAX_NS = 1000000 };

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct channel *channel = calloc(1, sizeof *channel);
    if (!channel)
        return NULL;
    channel->last = &channel->first;
    channel->base.context = context;
    channel->base.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    if (channel->base.fd >= 0)
        return &channel->base;
    free(channel);
    return NULL;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    if (channel->refcnt)
        return EBUSY;
    close(channel->fd);
    free(channel);
    return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                             struct ibv_comp_channel *channel, int comp_vector)
{
    struct cq *cq = calloc(1, sizeof *cq);
    if (cqe < 1 || cqe > CQE_MAX || comp_vector < 0 || comp_vector >= context->num_comp_vectors ||
        !cq || !(cq->entries = calloc((size_t)cqe, sizeof *cq->entries))) {
        errno = cq && (cqe < 1 || cqe > CQE_MAX || comp_vector) ? EINVAL : ENOMEM;
        free(cq);
        return NULL;
    }
    cq->size = (uint32_t)cqe;
    cq->base = (struct ibv_cq){.context = context, .channel = channel, .cq_context = cq_context,
                               .cqe = cqe};
    pthread_mutex_init(&cq->base.mutex, NULL);
    pthread_cond_init(&cq->base.cond, NULL);
    if (channel)
        channel->refcnt++;
    return &cq->base;
}

int ibv_resize_cq(struct ibv_cq *base, int cqe)
{
    struct cq *cq = (struct cq *)base;
    struct ctx *ctx = ctx_of(base->context);
    bool is_some = cqe > 0 && cqe <= CQE_MAX;
    struct ibv_wc *entries = is_some ? calloc((size_t)cqe, sizeof *entries) : NULL;
    if (!entries)
        return EINVAL;
    pthread_mutex_lock(&ctx->lock);
    bool fits = (uint32_t)cqe >= cq->count;
    if (fits) {
        for (uint32_t i = 0; i < cq->count; i++)
            entries[i] = cq->entries[(cq->head + i) % cq->size];
        free(cq->entries);
        cq->entries = entries;
        cq->head = 0;
        cq->size = (uint32_t)cqe;
        base->cqe = cqe;
    }
    pthread_mutex_unlock(&ctx->lock);
    if (!fits)
        free(entries);
    return fits ? 0 : EINVAL;
}

int ibv_destroy_cq(struct ibv_cq *base)
{
    struct cq *cq = (struct cq *)base;
    struct ctx *ctx = ctx_of(base->context);
    pthread_mutex_lock(&ctx->lock);
    for (uint32_t i = 0; i < ctx->qps_next; i++) {
        const struct qp *qp = ctx->qps[i];
        if (qp && (qp->ex.qp_base.send_cq == base || qp->ex.qp_base.recv_cq == base)) {
            pthread_mutex_unlock(&ctx->lock);
            return EBUSY;
        }
    }
    struct channel *channel = (struct channel *)base->channel;
    if (channel) {
        channel->base.refcnt--;
        for (struct cq **at = &channel->first; *at;)
            if (*at == cq) {
                uint64_t one;
                *at = cq->next_event;
                if (read(channel->base.fd, &one, sizeof one) < 0)
                    break;
            } else {
                at = &(*at)->next_event;
            }
        for (channel->last = &channel->first; *channel->last;)
            channel->last = &(*channel->last)->next_event;
    }
    pthread_mutex_unlock(&ctx->lock);
    free(cq->entries);
    free(cq);
    return 0;
}

/* Once is enough until the program asks again. */
static void tell(struct cq *cq, bool is_solicited)
{
    struct channel *channel = (struct channel *)cq->base.channel;
    uint64_t one = 1;
    if (!channel || !cq->armed || (cq->armed == 2 && !is_solicited))
        return;
    cq->armed = 0;
    if (cq->events++)
        return; /* it stands in the list */
    cq->next_event = NULL;
    *channel->last = cq;
    channel->last = &cq->next_event;
    if (write(channel->base.fd, &one, sizeof one) < 0)
        return; /* it is full: then there is plenty to read */
}

void cq_put(struct ibv_cq *base, const struct ibv_wc *wc, bool is_solicited)
{
    struct cq *cq = (struct cq *)base;
    if (cq->count == cq->size) {
        cq->overrun = true; /* what does not fit is lost, and polling says so from now on */
        return;
    }
    cq->entries[(cq->head + cq->count) % cq->size] = *wc;
    cq->count++;
    if (cq->waiting)
        syscall(SYS_futex, &cq->count, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
    tell(cq, is_solicited || wc->status);
}

void cq_forget(struct ibv_cq *base, uint32_t qp_num)
{
    struct cq *cq = (struct cq *)base;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < cq->count; i++) {
        const struct ibv_wc *wc = &cq->entries[(cq->head + i) % cq->size];
        if (wc->qp_num != qp_num)
            cq->entries[(cq->head + kept++) % cq->size] = *wc;
    }
    cq->count = kept;
}

/* By the kernel itself: the library's functions that wait may go by the fabric's clock. */
static void sleep_until_filled(struct ctx *ctx, struct cq *cq)
{
    ns_t nap = SLEEP_FABRIC_NS * ctx->dilation;
    const struct timespec most = {0, (long)(nap < SLEEP_MAX_NS ? nap : SLEEP_MAX_NS)};
    cq->waiting++;
    syscall(SYS_futex, &cq->count, FUTEX_WAIT_PRIVATE, 0, &most, NULL, 0);
    cq->waiting--;
}

int cq_poll(struct ibv_cq *base, int most, struct ibv_wc *wc)
{
    struct cq *cq = (struct cq *)base;
    struct ctx *ctx = ctx_of(base->context);
    if (!cq->count) {
        if (cq->overrun)
            return -1;
        if (++cq->empty_polls < POLLS_AWAKE)
            return 0;
        if (ctx->dilation > 1)
            sleep_until_filled(ctx, cq);
        else
            sched_yield();
        if (!cq->count)
            return 0;
    }
    cq->empty_polls = 0;
    pthread_mutex_lock(&ctx->lock);
    int n = 0;
    for (; n < most && cq->count; n++) {
        wc[n] = cq->entries[cq->head];
        cq->head = (cq->head + 1) % cq->size;
        cq->count--;
    }
    pthread_mutex_unlock(&ctx->lock);
    return n;
}

int cq_notify(struct ibv_cq *base, int solicited_only)
{
    struct ctx *ctx = ctx_of(base->context);
    pthread_mutex_lock(&ctx->lock);
    ((struct cq *)base)->armed = solicited_only ? 2 : 1;
    pthread_mutex_unlock(&ctx->lock);
    return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *base, struct ibv_cq **cq, void **cq_context)
{
    struct channel *channel = (struct channel *)base;
    struct ctx *ctx = ctx_of(base->context);
    struct cq *first;
    uint64_t one;
    do {
        if (read(base->fd, &one, sizeof one) < 0)
            return -1;
        pthread_mutex_lock(&ctx->lock);
        first = channel->first;
        if (first) {
            channel->first = first->next_event;
            if (!channel->first)
                channel->last = &channel->first;
            first->events = 0;
        }
        pthread_mutex_unlock(&ctx->lock);
    } while (!first);
    *cq = &first->base;
    *cq_context = first->base.cq_context;
    return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned count)
{
    pthread_mutex_lock(&cq->mutex);
    cq->comp_events_completed += count;
    pthread_mutex_unlock(&cq->mutex);
}
