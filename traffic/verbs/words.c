/* What numbers of verbs are called, and what of verbs is refused here by name. */
#include <errno.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

#include "verbs_abi.h"

#define COUNT(list) (int)(sizeof(list) / sizeof *(list))

const char *ibv_wc_status_str(int status)
{
    static const char *const words[] = {
        "success", "local length error", "local QP operation error",
        "local EE context operation error", "local protection error",
        "Work Request Flushed Error", "memory management operation error", "bad response error",
        "local access error", "remote invalid request error", "remote access error",
        "remote operation error", "transport retry counter exceeded", "RNR retry counter exceeded",
    };
    return status >= 0 && status < COUNT(words) ? words[status] : "unknown";
}

const char *ibv_node_type_str(int type)
{
    return type == IBV_NODE_CA ? "InfiniBand channel adapter" : "unknown";
}

const char *ibv_port_state_str(int state)
{
    static const char *const words[] = {"no state change (NOP)", "PORT_DOWN", "PORT_INIT",
                                        "PORT_ARMED", "PORT_ACTIVE", "PORT_ACTIVE_DEFER"};
    return state >= 0 && state < COUNT(words) ? words[state] : "invalid state";
}

const char *ibv_event_type_str(int event)
{
    static const char *const words[] = {"CQ error", "local work queue catastrophic error",
                                        "invalid request local work queue error",
                                        "local access violation work queue error"};
    return event >= 0 && event < COUNT(words) ? words[event] : "unknown";
}

/* Rates are multiples of 2.5 Gb/s; of a number that is none of them nothing is known. */
static const struct { int rate, multiple; } rates[] = {
    {2, 1}, {5, 2}, {3, 4}, {6, 8}, {4, 12}, {7, 16}, {8, 24}, {9, 32}, {10, 48},
    {15, 10}, {16, 40}, {17, 80}, {18, 120}, {20, 20}, {21, 160}, {22, 240}, {23, 320},
};

int ibv_rate_to_mult(int rate)
{
    for (int i = 0; i < COUNT(rates); i++)
        if (rates[i].rate == rate)
            return rates[i].multiple;
    return -1;
}
int mult_to_ibv_rate(int multiple)
{
    for (int i = 0; i < COUNT(rates); i++)
        if (rates[i].multiple == multiple)
            return rates[i].rate;
    return 0;
}
int ibv_rate_to_mbps(int rate) { return ibv_rate_to_mult(rate) * 2500; }
int mbps_to_ibv_rate(int mbps) { return mult_to_ibv_rate(mbps / 2500); }

/* --- without effect --------------------------------------------------------------------------- */

int ibv_fork_init(void) { return 0; }
int ibv_is_fork_initialized(void) { return 2; /* there is no need: nothing is read by a device */ }
int ibv_dontfork_range(void *base, size_t size) { return (void)base, (void)size, 0; }
int ibv_dofork_range(void *base, size_t size) { return (void)base, (void)size, 0; }
const char *ibv_get_sysfs_path(void) { return "/sys"; }

int ibv_read_sysfs_file(const char *folder, const char *file, char *text, size_t size)
{
    return (void)folder, (void)file, (void)text, (void)size, -1;
}

int ibv_query_qp_data_in_order(struct ibv_qp *qp, int opcode, uint32_t flags)
{
    return (void)qp, (void)opcode, (void)flags, 0;
}

/* --- not here --------------------------------------------------------------------------------- */

#define REFUSED(name) \
    void *name(void) \
    { \
        errno = EOPNOTSUPP; \
        return NULL; \
    }
#define REFUSED_BY_CODE(name) \
    int name(void) { return errno = EOPNOTSUPP; }

REFUSED(ibv_reg_dmabuf_mr)
REFUSED(ibv_import_device)
REFUSED(ibv_import_pd)
REFUSED(ibv_import_mr)
REFUSED(ibv_import_dm)
REFUSED_BY_CODE(ibv_attach_mcast)
REFUSED_BY_CODE(ibv_detach_mcast)
REFUSED_BY_CODE(ibv_resolve_eth_l2_from_gid)
REFUSED_BY_CODE(ibv_rereg_mr)
REFUSED_BY_CODE(ibv_set_ece)
REFUSED_BY_CODE(ibv_query_ece)

void ibv_unimport_pd(void *pd) { (void)pd; }
void ibv_unimport_mr(void *mr) { (void)mr; }
void ibv_unimport_dm(void *dm) { (void)dm; }

/* Nothing happens that a program would have to be told of: whoever waits for it waits on. */
int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    uint64_t never;
    (void)event;
    if (read(context->async_fd, &never, sizeof never) >= 0)
        errno = EINTR;
    return -1;
}
void ibv_ack_async_event(struct ibv_async_event *event) { (void)event; }
