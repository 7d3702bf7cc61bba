/* Packets from their parts, and to whom a packet that came belongs. */
#include <errno.h>

#include "../core/icrc.h"
#include "rc.h"

enum {
    SOURCE_PORT_MIN = 0xC000,
    CE = 3, /* of the two bits that routers mark congestion in */
    TTL = 64,
    CNP_PRIORITY_DSCP = 48,
    PKEY = 0xFFFF,
    WORD = 4, /* bytes, in which data is counted */
};

static bool is_mapped(const union ibv_gid *gid)
{
    static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    return !memcmp(gid->raw, mapped, sizeof mapped);
}

/* Without a flow label from the queue pairs at both ends, so that ways spread by them. */
void way_spread(struct way *way, uint32_t label, uint32_t from, uint32_t to)
{
    uint8_t *udp = way->headers + way->bytes - WIRE_UDP;
    if (!label) {
        uint64_t mixed = (uint64_t)from * to * 0x9E3779B97F4A7C15u;
        label = (uint32_t)(mixed >> 32) & 0xFFFFF;
    }
    be16_store(udp, (uint16_t)(SOURCE_PORT_MIN | ((label ^ label >> 14) & 0x3FFF)));
}

int way_find(struct ctx *ctx, struct way *way, const struct ibv_ah_attr *to)
{
    uint8_t *ethernet = way->headers, *ip = ethernet + WIRE_ETHERNET;
    if (!to->is_global || to->grh.sgid_index >= ctx->gid_count)
        return EINVAL; /* RoCE has no local identifiers */
    const union ibv_gid *from = &ctx->gids[to->grh.sgid_index];
    if (is_mapped(from) != is_mapped(&to->grh.dgid))
        return EINVAL;
    memset(ethernet, 0, sizeof way->headers);
    if (!route_find(ctx, &to->grh.dgid, ethernet))
        return ETIMEDOUT;
    memcpy(ethernet + 6, ctx->mac, 6);
    uint8_t hops = to->grh.hop_limit > 1 ? to->grh.hop_limit : TTL;
    if (is_mapped(from)) {
        be16_store(ethernet + 12, ETHERTYPE_IPV4);
        ip[0] = 0x45;
        be16_store(ip + 6, 0x4000); /* never in pieces */
        ip[8] = hops;
        ip[9] = IP_UDP;
        memcpy(ip + 12, from->raw + 12, 4);
        memcpy(ip + 16, to->grh.dgid.raw + 12, 4);
    } else {
        be16_store(ethernet + 12, ETHERTYPE_IPV6);
        ip[0] = 0x60;
        ip[6] = IP_UDP;
        ip[7] = hops;
        memcpy(ip + 8, from->raw, 16);
        memcpy(ip + 24, to->grh.dgid.raw, 16);
    }
    ip_set_tos(ip, to->grh.traffic_class ? to->grh.traffic_class | 2 : ctx->tos);
    uint8_t *udp = ip + ip_bytes(ip);
    be16_store(udp + 2, ROCE_PORT);
    way->bytes = (uint32_t)(udp - ethernet) + WIRE_UDP;
    return 0;
}

uint8_t *packet_begin(struct ctx *ctx, const struct way *way, uint32_t to, uint8_t opcode,
                      uint64_t seq, bool ask)
{
    uint8_t *bth = ctx->frame + way->bytes;
    memcpy(ctx->frame, way->headers, way->bytes);
    memset(bth, 0, WIRE_BTH);
    bth[0] = opcode;
    bth[1] = 0x40; /* M: path migration is over, which it never begins */
    be16_store(bth + 2, PKEY);
    be24_store(bth + 5, to);
    bth[8] = ask ? BTH_ACK_REQUEST : 0;
    be24_store(bth + 9, (uint32_t)seq & PSN_MASK);
    return bth;
}

static void close_ipv4(uint8_t *ip)
{
    uint32_t sum = 0;
    be16_store(ip + 10, 0);
    for (int i = 0; i < WIRE_IPV4; i += 2)
        sum += be16_load(ip + i);
    sum = (sum & 0xFFFF) + (sum >> 16);
    be16_store(ip + 10, (uint16_t)~((sum & 0xFFFF) + (sum >> 16)));
}

bool packet_end(struct ctx *ctx, uint8_t *bth, uint8_t *end, uint32_t payload)
{
    uint8_t *ip = ctx->frame + WIRE_IP_AT;
    uint32_t pad = -payload & 3;
    bth[1] = (uint8_t)(bth[1] | pad << 4);
    memset(end, 0, pad);
    end += pad;
    uint32_t length = (uint32_t)(end - ip) + WIRE_ICRC, of_ip = ip_bytes(ip);
    be16_store(ip + of_ip + 4, (uint16_t)(length - of_ip));
    if (ip_is_v6(ip)) {
        be16_store(ip + 4, (uint16_t)(length - of_ip));
    } else {
        be16_store(ip + 2, (uint16_t)length);
        close_ipv4(ip);
    }
    uint32_t icrc = icrc_of(ip, bth, (size_t)(end - bth), length, ROCE_PORT);
    memcpy(end, &icrc, sizeof icrc);
    return port_send(ctx, (uint32_t)(end - ctx->frame) + WIRE_ICRC);
}

bool packet_cnp(struct ctx *ctx, const struct qp *qp)
{
    uint8_t *bth = packet_begin(ctx, &qp->way, qp->attr.dest_qp_num, BTH_CNP, 0, false);
    ip_set_tos(ctx->frame + WIRE_IP_AT, CNP_PRIORITY_DSCP << 2);
    bth[4] |= BTH_BECN;
    memset(bth + WIRE_BTH, 0, WIRE_CNP_PAD);
    return packet_end(ctx, bth, bth + WIRE_BTH + WIRE_CNP_PAD, 0);
}

/* The BTH of a whole and undamaged packet of RoCEv2, and how long it is to the ICRC; or NULL. */
static uint8_t *open_packet(struct ctx *ctx, uint8_t *frame, uint32_t bytes, uint32_t *length)
{
    uint8_t *ip = frame + WIRE_IP_AT;
    if (bytes < WIRE_ETHERNET + WIRE_IPV4 + WIRE_UDP + WIRE_BTH + WIRE_ICRC ||
        (!ip_is_v6(ip) && ip[0] != 0x45) || ip_protocol(ip) != IP_UDP)
        return NULL;
    uint32_t all = ip_length(ip), head = ip_bytes(ip) + WIRE_UDP;
    if (all + WIRE_ETHERNET > bytes || all < head + WIRE_BTH + WIRE_ICRC ||
        be16_load(ip + ip_bytes(ip) + 2) != ROCE_PORT)
        return NULL;
    uint8_t *bth = ip + head;
    uint32_t icrc;
    *length = all - head - WIRE_ICRC;
    memcpy(&icrc, bth + *length, sizeof icrc);
    if (icrc == icrc_of(ip, bth, *length, all, ROCE_PORT))
        return bth;
    ctx->counts.rx_icrc_encapsulated++;
    return NULL;
}

/* It comes from where the queue pair is connected to. */
static bool is_of_peer(const struct qp *qp, const uint8_t *ip)
{
    const uint8_t *ours = qp->way.headers + WIRE_ETHERNET;
    uint32_t bytes = ip_address_bytes(ours), at = ip_source_at(ours);
    return ip_is_v6(ip) == ip_is_v6(ours) && !memcmp(ip + at, ours + at + bytes, bytes);
}

static bool is_answer(uint8_t opcode)
{
    return opcode >= RC_READ_FIRST && opcode <= RC_ATOMIC_ACKNOWLEDGE;
}

void packet_arrived(struct ctx *ctx, uint8_t *frame, uint32_t bytes)
{
    uint32_t length;
    uint8_t *bth = open_packet(ctx, frame, bytes, &length), *ip = frame + WIRE_IP_AT;
    ns_t now = port_now();
    ctx->counts.port_rcv_packets++;
    ctx->counts.port_rcv_data += bytes / WORD;
    if (!bth) {
        ctx->counts.port_rcv_errors++;
        return;
    }
    uint32_t number = be24_load(bth + 5) & (QPS_MAX - 1);
    struct qp *qp = number < ctx->qps_next ? ctx->qps[number] : NULL;
    if (!qp || !qp_is_able(qp, IBV_QPS_RTR))
        return;
    if (datagram_is(qp)) {
        datagram_arrived(ctx, qp, ip, bth, length);
        return;
    }
    if (!is_of_peer(qp, ip))
        return;
    if (bth[0] == BTH_CNP) {
        *(qp->cc ? &ctx->counts.rp_cnp_handled : &ctx->counts.rp_cnp_ignored) += 1;
        rate_notified(ctx, qp, now);
        return;
    }
    if ((ip_tos(ip) & 3) == CE && bth[0] != RC_ACKNOWLEDGE) {
        ctx->counts.np_ecn_marked_roce_packets++;
        if (now - qp->cnp_at >= rate_notice_interval(ctx) && packet_cnp(ctx, qp)) {
            qp->cnp_at = now;
            ctx->counts.np_cnp_sent++;
        }
    }
    if (is_answer(bth[0])) {
        requester_answered(ctx, qp, bth, length, now);
        return;
    }
    responder_asked(ctx, qp, bth, length, now);
}
