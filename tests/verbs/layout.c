/* How long records of verbs are, and where their members lie: by our header, or by libibverbs'
 * own. */
#ifdef OURS
#include "verbs_abi.h"
#else
#include <infiniband/verbs.h>
#endif
#include <stdio.h>

#define SIZE(type) printf(#type " %zu\n", sizeof(struct type))
#define PLACE(type, member) printf(#type "." #member " %zu\n", offsetof(struct type, member))

int main(void)
{
    SIZE(ibv_device);
    SIZE(ibv_device_attr);
    SIZE(ibv_port_attr);
    SIZE(ibv_wc);
    SIZE(ibv_mr);
    SIZE(ibv_ah_attr);
    SIZE(ibv_sge);
    SIZE(ibv_send_wr);
    SIZE(ibv_recv_wr);
    SIZE(ibv_srq);
    SIZE(ibv_srq_init_attr);
    SIZE(ibv_qp_init_attr);
    SIZE(ibv_qp_init_attr_ex);
    SIZE(ibv_qp_attr);
    SIZE(ibv_qp);
    SIZE(ibv_qp_ex);
    SIZE(ibv_comp_channel);
    SIZE(ibv_cq);
    SIZE(ibv_context_ops);
    SIZE(ibv_context);
    SIZE(verbs_context);
    SIZE(ibv_gid_entry);
    SIZE(ibv_async_event);
    SIZE(ibv_ah);
    PLACE(ibv_device, name);
    PLACE(ibv_device_attr, max_qp);
    PLACE(ibv_device_attr, atomic_cap);
    PLACE(ibv_device_attr, phys_port_cnt);
    PLACE(ibv_port_attr, link_layer);
    PLACE(ibv_port_attr, lid);
    PLACE(ibv_wc, imm_data);
    PLACE(ibv_wc, wc_flags);
    PLACE(ibv_wc, sl);
    PLACE(ibv_send_wr, opcode);
    PLACE(ibv_send_wr, send_flags);
    PLACE(ibv_send_wr, imm_data);
    PLACE(ibv_send_wr, wr);
    PLACE(ibv_qp_init_attr_ex, comp_mask);
    PLACE(ibv_qp_init_attr_ex, pd);
    PLACE(ibv_qp_init_attr_ex, send_ops_flags);
    PLACE(ibv_qp_attr, ah_attr);
    PLACE(ibv_qp_attr, pkey_index);
    PLACE(ibv_qp_attr, max_rd_atomic);
    PLACE(ibv_qp_attr, timeout);
    PLACE(ibv_qp_attr, rnr_retry);
    PLACE(ibv_qp, qp_num);
    PLACE(ibv_qp, state);
    PLACE(ibv_qp_ex, wr_flags);
    PLACE(ibv_qp_ex, wr_rdma_write);
    PLACE(ibv_qp_ex, wr_set_sge);
    PLACE(ibv_qp_ex, wr_complete);
    PLACE(ibv_context_ops, poll_cq);
    PLACE(ibv_context_ops, req_notify_cq);
    PLACE(ibv_context_ops, post_srq_recv);
    PLACE(ibv_context_ops, post_send);
    PLACE(ibv_context_ops, post_recv);
    PLACE(ibv_context, cmd_fd);
    PLACE(ibv_context, async_fd);
    PLACE(ibv_context, abi_compat);
    PLACE(verbs_context, query_port);
    PLACE(verbs_context, create_cq_ex);
    PLACE(verbs_context, query_device_ex);
    PLACE(verbs_context, create_qp_ex);
    PLACE(verbs_context, sz);
    PLACE(verbs_context, context);
    PLACE(ibv_cq, cqe);
    PLACE(ibv_cq, comp_events_completed);
    PLACE(ibv_ah_attr, is_global);
    PLACE(ibv_ah_attr, grh);
    PLACE(ibv_global_route, traffic_class);
    return 0;
}
