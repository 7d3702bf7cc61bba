/* Names and endpoints: rdma_getaddrinfo, and what makes an id of what it found. */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "cm.h"

enum { RESOLVE_MS = 2000 };

static struct sockaddr *copied(const struct sockaddr *address, socklen_t size)
{
    struct sockaddr *copy = malloc(size);
    return copy ? memcpy(copy, address, size) : NULL;
}

void rdma_freeaddrinfo(struct rdma_addrinfo *found)
{
    if (!found)
        return;
    free(found->ai_src_addr);
    free(found->ai_dst_addr);
    free(found);
}

/* What is copied of the hints: all, if no name is asked for. */
static bool copy_hints(struct rdma_addrinfo *made, const struct rdma_addrinfo *wanted, bool all)
{
    bool is_datagram = wanted->ai_qp_type == IBV_QPT_UD || wanted->ai_port_space == RDMA_PS_UDP;
    made->ai_flags = wanted->ai_flags;
    made->ai_family = wanted->ai_family;
    made->ai_qp_type = is_datagram ? IBV_QPT_UD : IBV_QPT_RC;
    made->ai_port_space = wanted->ai_port_space ? wanted->ai_port_space
                          : is_datagram         ? RDMA_PS_UDP
                                                : RDMA_PS_TCP;
    if (wanted->ai_src_len && (all || !(wanted->ai_flags & RAI_PASSIVE))) {
        made->ai_src_addr = copied(wanted->ai_src_addr, wanted->ai_src_len);
        made->ai_src_len = made->ai_src_addr ? wanted->ai_src_len : 0;
    }
    if (wanted->ai_dst_len && all) {
        made->ai_dst_addr = copied(wanted->ai_dst_addr, wanted->ai_dst_len);
        made->ai_dst_len = made->ai_dst_addr ? wanted->ai_dst_len : 0;
    }
    const struct sockaddr *any = made->ai_dst_addr ? made->ai_dst_addr : made->ai_src_addr;
    if (any && !made->ai_family)
        made->ai_family = any->sa_family;
    return !all || (made->ai_src_len == wanted->ai_src_len &&
                    made->ai_dst_len == wanted->ai_dst_len);
}

/* Ask for a name. */
static int look_up(const char *node, const char *service, const struct rdma_addrinfo *wanted,
                   struct rdma_addrinfo *made)
{
    bool is_passive = wanted->ai_flags & RAI_PASSIVE;
    struct addrinfo ask = {
        .ai_flags = (is_passive ? AI_PASSIVE : 0) |
                    (wanted->ai_flags & RAI_NUMERICHOST ? AI_NUMERICHOST : 0),
        .ai_family = wanted->ai_family ? wanted->ai_family : AF_INET, /* which programs prefer */
        .ai_socktype = SOCK_STREAM,
    }, *found;
    int code = getaddrinfo(node, service, &ask, &found);
    if (code && !wanted->ai_family) {
        ask.ai_family = AF_INET6;
        code = getaddrinfo(node, service, &ask, &found);
    }
    if (code)
        return code;
    struct sockaddr *copy = copied(found->ai_addr, found->ai_addrlen);
    made->ai_family = found->ai_family;
    *(is_passive ? &made->ai_src_addr : &made->ai_dst_addr) = copy;
    *(is_passive ? &made->ai_src_len : &made->ai_dst_len) = copy ? found->ai_addrlen : 0;
    freeaddrinfo(found);
    return copy ? 0 : EAI_MEMORY;
}

/* As getaddrinfo returns it: zero, or what gai_strerror explains. */
int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
                     struct rdma_addrinfo **found)
{
    static const struct rdma_addrinfo none;
    const struct rdma_addrinfo *wanted = hints ? hints : &none;
    bool is_asked = node || service;
    if (!is_asked && !hints)
        return cm_failed(EINVAL);
    struct rdma_addrinfo *made = calloc(1, sizeof *made);
    int code = made && copy_hints(made, wanted, !is_asked) ? 0 : EAI_MEMORY;
    if (!code && is_asked)
        code = look_up(node, service, wanted, made);
    if (code)
        rdma_freeaddrinfo(made);
    else
        *found = made;
    return code;
}

/* --- endpoints -------------------------------------------------------------------------------- */

static int listen_later(struct cm_id *id, struct rdma_addrinfo *from, struct ibv_pd *pd,
                        const struct ibv_qp_init_attr *init)
{
    if (rdma_bind_addr(&id->base, from->ai_src_addr))
        return -1;
    id->pd_to_have = pd;
    if (!init)
        return 0;
    id->to_have = malloc(sizeof *init);
    if (!id->to_have)
        return cm_failed(ENOMEM);
    *id->to_have = *init;
    return 0;
}

int rdma_create_ep(struct rdma_cm_id **made, struct rdma_addrinfo *from, struct ibv_pd *pd,
                   struct ibv_qp_init_attr *init)
{
    struct rdma_cm_id *id;
    int code = rdma_create_id(NULL, &id, NULL, from->ai_port_space);
    if (code)
        return code;
    id->qp_type = from->ai_qp_type;
    if (from->ai_flags & RAI_PASSIVE)
        code = listen_later(cm_of(id), from, pd, init);
    else
        code = rdma_resolve_addr(id, from->ai_src_addr, from->ai_dst_addr, RESOLVE_MS) ||
                       rdma_resolve_route(id, RESOLVE_MS)
                   ? -1
                   : 0;
    if (!code && init && !(from->ai_flags & RAI_PASSIVE)) {
        init->qp_type = from->ai_qp_type;
        code = rdma_create_qp(id, pd, init);
    }
    if (code) {
        int why = errno;
        rdma_destroy_id(id);
        return cm_failed(why);
    }
    *made = id;
    return 0;
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
    rdma_destroy_qp(id);
    rdma_destroy_srq(id);
    rdma_destroy_id(id);
}

int rdma_get_request(struct rdma_cm_id *listener, struct rdma_cm_id **made)
{
    struct cm_id *by = cm_of(listener);
    struct rdma_cm_event *event;
    if (!by->is_synchronous)
        return cm_failed(EINVAL);
    if (rdma_get_cm_event(listener->channel, &event))
        return -1;
    struct rdma_cm_id *id = event->id;
    if (rdma_migrate_id(id, NULL))
        return -1;
    id->event = event;
    if (by->to_have) {
        struct ibv_qp_init_attr init = *by->to_have;
        init.qp_type = listener->qp_type;
        if (rdma_create_qp(id, by->pd_to_have, &init)) {
            rdma_destroy_id(id);
            return -1;
        }
    }
    *made = id;
    return 0;
}
