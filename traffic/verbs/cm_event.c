/* What happened to connections: queued by channel, handed out in order. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cm.h"

pthread_mutex_t cm_lock = PTHREAD_MUTEX_INITIALIZER;

static struct cm_channel *channel_of(struct rdma_event_channel *channel)
{
    return (struct cm_channel *)channel;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
    struct cm_channel *channel = calloc(1, sizeof *channel);
    if (!channel)
        return NULL;
    channel->last = &channel->first;
    channel->base.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    if (channel->base.fd >= 0)
        return &channel->base;
    free(channel);
    return NULL;
}

void rdma_destroy_event_channel(struct rdma_event_channel *base)
{
    struct cm_channel *channel = channel_of(base);
    for (struct cm_event *event = channel->first, *next; event; event = next) {
        next = event->next;
        free(event);
    }
    close(base->fd);
    free(channel);
}

/* --- put ------------------------------------------------------------------------------------- */

static void put(struct cm_channel *channel, struct cm_event *event)
{
    const uint64_t one = 1;
    event->next = NULL;
    *channel->last = event;
    channel->last = &event->next;
    if (write(channel->base.fd, &one, sizeof one) < 0)
        return; /* it is full: then there is plenty to read */
}

/* What came with it: of a connection what the peer said of itself, of datagrams where it is. */
static void fill(struct cm_event *event, const struct cm_id *id)
{
    const struct cm_message *said = &id->theirs;
    memcpy(event->private_data, said->private_data, said->private_length);
    if (id->base.ps == RDMA_PS_UDP && event->base.event == RDMA_CM_EVENT_ESTABLISHED) {
        event->base.param.ud = (struct rdma_ud_param){
            .private_data = said->private_length ? event->private_data : NULL,
            .private_data_len = said->private_length,
            .ah_attr = {.is_global = 1, .port_num = CM_PORT,
                        .grh = {.dgid = id->base.route.addr.ibaddr.dgid, .hop_limit = 64,
                                .sgid_index = (uint8_t)id->gid_index}},
            .qp_num = said->qpn,
            .qkey = said->qkey,
        };
        return;
    }
    event->base.param.conn = (struct rdma_conn_param){
        .private_data = said->private_length ? event->private_data : NULL,
        .private_data_len = said->private_length,
        .responder_resources = said->reads_out, /* what the peer would have under way */
        .initiator_depth = said->reads_in,
        .retry_count = said->retries,
        .rnr_retry_count = said->rnr_retries,
        .srq = said->srq,
        .qp_num = said->qpn,
    };
}

void cm_tell(struct cm_id *id, int what, int status)
{
    struct cm_event *event = calloc(1, sizeof *event);
    if (!event || !id->base.channel)
        return free(event);
    event->base = (struct rdma_cm_event){.id = &id->base, .event = what, .status = status};
    if (id->listener)
        event->base.listen_id = &id->listener->base;
    if (what >= RDMA_CM_EVENT_CONNECT_REQUEST && what <= RDMA_CM_EVENT_ESTABLISHED)
        fill(event, id);
    /* Of a synchronous listener, whom rdma_get_request asks. */
    bool is_asked = what == RDMA_CM_EVENT_CONNECT_REQUEST && id->listener;
    put(channel_of(is_asked ? id->listener->base.channel : id->base.channel), event);
}

/* --- taken ----------------------------------------------------------------------------------- */

int rdma_get_cm_event(struct rdma_event_channel *base, struct rdma_cm_event **found)
{
    struct cm_channel *channel = channel_of(base);
    struct cm_event *event;
    uint64_t one;
    do {
        if (read(base->fd, &one, sizeof one) < 0)
            return -1;
        pthread_mutex_lock(&cm_lock);
        event = channel->first;
        if (event && !(channel->first = event->next))
            channel->last = &channel->first;
        pthread_mutex_unlock(&cm_lock);
    } while (!event); /* it was withdrawn */
    *found = &event->base;
    return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
    if (!event)
        return cm_failed(EINVAL);
    free(event);
    return 0;
}

/* Take those of an id out of a channel, and put them in another one; NULL: they are dropped. */
static void move(struct cm_id *id, struct cm_channel *from, struct cm_channel *to)
{
    for (struct cm_event **at = &from->first, *event; (event = *at);) {
        if (event->base.id != &id->base) {
            at = &event->next;
            continue;
        }
        *at = event->next;
        if (to)
            put(to, event);
        else
            free(event);
    }
    for (from->last = &from->first; *from->last;)
        from->last = &(*from->last)->next;
}

void cm_forget(struct cm_id *id)
{
    if (id->base.channel)
        move(id, channel_of(id->base.channel), NULL);
}

bool cm_is_untold(const struct cm_id *id)
{
    const struct cm_event *event = channel_of(id->base.channel)->first;
    while (event && (event->base.id != &id->base ||
                     event->base.event != RDMA_CM_EVENT_CONNECT_REQUEST))
        event = event->next;
    return event;
}

int rdma_migrate_id(struct rdma_cm_id *base, struct rdma_event_channel *to)
{
    struct cm_id *id = cm_of(base);
    struct rdma_event_channel *given = to ? to : rdma_create_event_channel();
    if (!given)
        return -1;
    pthread_mutex_lock(&cm_lock);
    struct rdma_event_channel *from = base->channel;
    if (from)
        move(id, channel_of(from), channel_of(given));
    bool was_own = id->is_synchronous;
    base->channel = given;
    id->is_synchronous = !to;
    pthread_mutex_unlock(&cm_lock);
    if (was_own && from)
        rdma_destroy_event_channel(from);
    return 0;
}

int cm_complete(struct cm_id *id)
{
    if (!id->is_synchronous)
        return 0;
    if (id->base.event)
        rdma_ack_cm_event(id->base.event);
    id->base.event = NULL;
    if (rdma_get_cm_event(id->base.channel, &id->base.event))
        return -1;
    int status = id->base.event->status;
    if (!status)
        return 0;
    return cm_failed(id->base.event->event == RDMA_CM_EVENT_REJECTED ? ECONNREFUSED
                     : status < 0                                    ? -status
                                                                     : status);
}

const char *rdma_event_str(int event)
{
    static const char *const words[] = {
        "RDMA_CM_EVENT_ADDR_RESOLVED",    "RDMA_CM_EVENT_ADDR_ERROR",
        "RDMA_CM_EVENT_ROUTE_RESOLVED",   "RDMA_CM_EVENT_ROUTE_ERROR",
        "RDMA_CM_EVENT_CONNECT_REQUEST",  "RDMA_CM_EVENT_CONNECT_RESPONSE",
        "RDMA_CM_EVENT_CONNECT_ERROR",    "RDMA_CM_EVENT_UNREACHABLE",
        "RDMA_CM_EVENT_REJECTED",         "RDMA_CM_EVENT_ESTABLISHED",
        "RDMA_CM_EVENT_DISCONNECTED",
    };
    return event >= 0 && event < (int)(sizeof words / sizeof *words) ? words[event] : "unknown";
}
