/* What librdmacm has and this one does not: sockets over RDMA, multicast groups, and extensions of
 * makers' own. Whoever asks is told so (EOPNOTSUPP).
 */
#include <errno.h>
#include <stdint.h>

#define REFUSED(name) \
    intptr_t name(void) \
    { \
        errno = EOPNOTSUPP; \
        return -1; \
    }

REFUSED(raccept)
REFUSED(rbind)
REFUSED(rclose)
REFUSED(rconnect)
REFUSED(rdma_get_remote_ece)
REFUSED(rdma_join_multicast)
REFUSED(rdma_join_multicast_ex)
REFUSED(rdma_leave_multicast)
REFUSED(rdma_reject_ece)
REFUSED(rdma_set_local_ece)
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
