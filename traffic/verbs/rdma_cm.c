/* librdmacm.so.1, by which perftest and others are linked: connections that are set up by
 * addresses are not to be had here yet, and whoever asks for one is told so (EOPNOTSUPP).
 * Connections set up by a socket of the program's own, which is what they do without -R, need
 * none of this.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

static void say(void)
{
    static int said;
    if (!said++)
        fprintf(stderr, "closlab0: rdma_cm is not here: connect without it (perftest: no -R)\n");
    errno = EOPNOTSUPP;
}

#define REFUSED(name) \
    intptr_t name(void) \
    { \
        say(); \
        return -1; \
    }
#define REFUSED_POINTER(name) \
    void *name(void) \
    { \
        say(); \
        return NULL; \
    }

const char *rdma_event_str(int event) { return (void)event, "unknown"; }
REFUSED(raccept)
REFUSED(rbind)
REFUSED(rclose)
REFUSED(rconnect)
REFUSED(rdma_accept)
REFUSED(rdma_ack_cm_event)
REFUSED(rdma_bind_addr)
REFUSED(rdma_connect)
REFUSED(rdma_create_ep)
REFUSED_POINTER(rdma_create_event_channel)
REFUSED(rdma_create_id)
REFUSED(rdma_create_qp)
REFUSED(rdma_create_qp_ex)
REFUSED(rdma_create_srq)
REFUSED(rdma_create_srq_ex)
REFUSED(rdma_destroy_ep)
REFUSED(rdma_destroy_event_channel)
REFUSED(rdma_destroy_id)
REFUSED(rdma_destroy_qp)
REFUSED(rdma_destroy_srq)
REFUSED(rdma_disconnect)
REFUSED(rdma_establish)
REFUSED(rdma_free_devices)
REFUSED(rdma_freeaddrinfo)
REFUSED(rdma_get_cm_event)
REFUSED_POINTER(rdma_get_devices)
REFUSED(rdma_get_dst_port)
REFUSED(rdma_get_remote_ece)
REFUSED(rdma_get_request)
REFUSED(rdma_get_src_port)
REFUSED(rdma_getaddrinfo)
REFUSED(rdma_init_qp_attr)
REFUSED(rdma_join_multicast)
REFUSED(rdma_join_multicast_ex)
REFUSED(rdma_leave_multicast)
REFUSED(rdma_listen)
REFUSED(rdma_migrate_id)
REFUSED(rdma_notify)
REFUSED(rdma_reject)
REFUSED(rdma_reject_ece)
REFUSED(rdma_resolve_addr)
REFUSED(rdma_resolve_route)
REFUSED(rdma_set_local_ece)
REFUSED(rdma_set_option)
REFUSED(rfcntl)
REFUSED(rgetpeername)
REFUSED(rgetsockname)
REFUSED(rgetsockopt)
REFUSED(riomap)
REFUSED(riounmap)
REFUSED(riowrite)
REFUSED(rlisten)
REFUSED(rpoll)
REFUSED(rread)
REFUSED(rreadv)
REFUSED(rrecv)
REFUSED(rrecvfrom)
REFUSED(rrecvmsg)
REFUSED(rselect)
REFUSED(rsend)
REFUSED(rsendmsg)
REFUSED(rsendto)
REFUSED(rsetsockopt)
REFUSED(rshutdown)
REFUSED(rsocket)
REFUSED(rwrite)
REFUSED(rwritev)
