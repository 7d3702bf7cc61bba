/* Making an endpoint, taking frames apart, and telling the host what ended. */
#include "endpoint.h"

#include <stdlib.h>

#include "icrc.h"
#include "transport.h"
#include "mrc_wire.h"
#include "sue.h"
#include "sue_wire.h"
#include "uet.h"

void ep_config_default(struct ep_config *config, bps_t link_bps)
{
    *config = (struct ep_config){
        .link_bps = link_bps,
        .ports = 1,
        .overhead_bytes = 24,
        .mtu = 4096,
        .ip = 4,
        .payload = EP_PAYLOAD_PATTERN,
        .recovery = EP_GO_BACK_N,
        .window = 512,
        .ack_every = 16,
        .rto = (ns_t)4096 << 20, /* as NCCL sets adapters by default */
        .retry_limit = 7,
        .reorder = EP_REORDER_ADAPTIVE,
        .catch_up = 1,
        .int_port = 20052, /* as p4src/types.p4 has it */
        .control_priority = 6,
        .entropies = 128,
        .last_hop_dscp = 42,
        .hops = 4,
        .base_rtt = 12000,
    };
    for (unsigned cc = 0; cc < CC_COUNT; cc++)
        cc_usual(&config->cc[cc], cc, link_bps ? link_bps : 1);
}

const char *ep_config_problem(const struct ep_config *config)
{
    if (config->link_bps < 1000000 || config->link_bps > 10000000000000u)
        return "a link's rate is between 1 Mb/s and 10 Tb/s";
    if (config->mtu < 64 || config->mtu > 9216 || config->mtu % 8)
        return "the path MTU is a multiple of 8 between 64 and 9216 bytes";
    if (config->ip != 4 && config->ip != 6)
        return "IP is of version 4 or 6";
    if (config->overhead_bytes > 1000)
        return "a frame's overhead is at most 1000 bytes";
    if (config->window < 1 || config->window > 1 << 20)
        return "the window is between 1 packet and 2^20";
    if (config->ack_every < 1)
        return "an ACK is asked for every 1 packet or more";
    if (config->retry_limit > 250)
        return "the retry limit is at most 250";
    if (config->rto_first && config->rto && config->rto_first > config->rto)
        return "the first time-out of a silence is no longer than the longest";
    if (config->catch_up < 1 || config->catch_up > 10000000000u)
        return "the lateness to make up for is between 1 ns and 10 s";
    if (config->csig && config->csig != CSIG_COMPACT && config->csig != CSIG_WIDE)
        return "a CSIG tag has 4 bytes or 8, or there is none: 0";
    if (config->control_priority > 7)
        return "priorities are 0 to 7";
    const struct credit_config *credit = &config->credit;
    if (credit->classes && (!credit->cell || !credit->ask_after || !credit->least ||
                            credit->least > credit->size || credit->size > INT32_MAX))
        return "credits need a cell, a time to ask after, and room for the largest frame, "
               "below 2 GiB";
    if (config->ports < 1 || config->ports > EP_PORTS || config->ports & (config->ports - 1))
        return "an adapter has 1, 2, 4 or 8 ports";
    if (config->ports > 1 &&
        (credit->classes || config->rx_buffer.rate || config->storm_from < config->storm_until))
        return "an adapter with several ports knows no credits, is as fast as its links, and sends "
               "no storm";
    if (rx_buffer_problem(&config->rx_buffer))
        return rx_buffer_problem(&config->rx_buffer);
    if (config->entropies < 1 || config->entropies > ENTROPY_MAX ||
        config->entropies & (config->entropies - 1))
        return "entropies are a power of two, at most 256";
    if (config->transport == EP_SUE && (config->ip != 4 || config->ports > 1 || config->mtu < SUE_STORE_MAX ||
                                        config->window > SUE_WINDOW_MAX))
        return "scale-up Ethernet compresses IPv4, by one port, stores 256 bytes at a time (the MTU), and "
               "has at most 2^15 unanswered";
    if (config->entropies < config->ports)
        return "there are at least as many entropies as ports";
    if (!config->base_rtt)
        return "a round trip takes some time";
    if (config->delivery != EP_RUD && config->transport != EP_UET)
        return "only UET has other modes of delivery than rud";
    if (config->headers != EP_STANDARD && config->transport != EP_UET)
        return "only UET has other semantic headers than standard";
    if (config->delivery == EP_ROD && (config->entropy != ENTROPY_SINGLE || config->ports > 1))
        return "what is to arrive in order (rod) takes one way, by one port";
    if (config->delivery > EP_ROD && config->entropy == ENTROPY_MRC)
        return "without a connection (rudi, uud) nobody answers probes of ways";
    if (config->transport != EP_MRC &&
        (config->timestamps || config->port_status || config->reverse_set))
        return "time stamps, the state of ports and ways for answers are MRC's";
    if (config->delivery == EP_RUDI && config->window > 1 << 14)
        return "rudi counts packets in 16 bits: the window is at most 16384";
    if (config->security && config->transport != EP_UET)
        return "security is UET's";
    return config->security && config->payload == EP_PAYLOAD_PATTERN ? tss_problem() : NULL;
}

static uint32_t bits_for(uint32_t window)
{
    uint32_t bits = 64;
    while (bits < window)
        bits *= 2;
    return bits;
}

/* Whether every packet takes a way of its own. */
static bool sprays(const struct ep_config *config)
{
    return config->transport == EP_UET || config->transport == EP_MRC;
}

struct ep *ep_new(const struct ep_config *config, const struct ep_port *port, uint32_t qps)
{
    if (ep_config_problem(config))
        return NULL;
    struct ep *ep = calloc(1, sizeof *ep);
    if (!ep)
        return NULL;
    bool is_uet = sprays(config), is_sue = config->transport == EP_SUE;
    bool is_selective = config->transport == EP_ROCE && config->recovery == EP_SELECTIVE;
    size_t sets = is_uet ? 3 : is_selective ? 2 : 0;
    size_t words = (size_t)qps * sets * bits_for(config->window) / 64;
    ep->config = *config;
    if (!is_selective) /* UET's is of its own */
        ep->config.recovery = is_uet || is_sue ? EP_GO_BACK_N : config->recovery;
    ep->transport = is_uet ? &UET : is_sue ? &SUE : &ROCE;
    ep->format = config->transport == EP_MRC ? &MRC_FORMAT : UET_FORMATS[config->delivery];
    ep->port = *port;
    ep->qp_room = qps;
    ep->storm_next = config->storm_from < config->storm_until ? config->storm_from : NS_NEVER;
    ep->repeat_at = NS_NEVER;
    ep->up = (uint8_t)((1u << config->ports) - 1);
    for (int port = 0; port < EP_PORTS; port++) {
        ep->lanes[port].rate = config->link_bps;
        for (int i = 0; i < 8; i++)
            ep->lanes[port].paused_since[i] = NS_NEVER;
    }
    credit_init(&ep->credit, &config->credit);
    ep->qps = calloc(qps + 1, sizeof *ep->qps);
    ep->pace.items = malloc((qps + 1) * sizeof *ep->pace.items);
    ep->rto.items = malloc((qps + 1) * sizeof *ep->rto.items);
    bool is_mrc = is_uet && config->entropy == ENTROPY_MRC;
    bool has_planes = is_uet && config->ports > 1;
    if (is_uet) {
        ep->uet = calloc(qps + 1, sizeof *ep->uet);
        ep->entropies = calloc((size_t)qps * config->ports + 1, sizeof *ep->entropies);
    }
    if (is_mrc)
        ep->ways = calloc((size_t)qps * config->entropies + 1, sizeof *ep->ways);
    size_t reverse = (size_t)qps * config->ports * sizeof *ep->reverse;
    if (config->reverse_set && (ep->reverse = malloc(reverse + 1)))
        memset(ep->reverse, 0xFF, reverse); /* MRC_NO_WAY */
    if (has_planes)
        ep->planes = malloc((size_t)qps * (config->ports - 1u) * ends_bytes(ep) + 1);
    if (is_selective) {
        ep->alarms.items = malloc((qps + 1) * sizeof *ep->alarms.items);
        ep->selective = calloc(qps + 1, sizeof *ep->selective);
    }
    if (config->security)
        ep->tss = tss_new(ep, qps);
    if (ep->tss)
        ep->tss_bytes = tss_header_bytes(config->ports > 1) + TSS_ICV - WIRE_ICRC;
    ep->bitmaps = calloc(words + 1, sizeof *ep->bitmaps);
    ep->room = calloc(1, WIRE_IPV6 + config->mtu + 512);
    bool map = idmap_init(&ep->qp_by_number, qps);
    if (is_sue) {
        ep->sue = calloc(qps + 1, sizeof *ep->sue);
        map = map && idmap_init(&ep->sue_by_peer, qps) && ep->sue;
    }
    bool selective = !is_selective || (ep->alarms.items && ep->selective);
    selective = selective && (!is_uet || (ep->uet && ep->entropies)) && (!is_mrc || ep->ways) &&
                (!has_planes || ep->planes) && (!config->security || ep->tss) &&
                (!config->reverse_set || ep->reverse);
    bool rx_buffer = rx_buffer_init(&ep->rx_buffer, &config->rx_buffer);
    if (!rx_buffer || !ep->qps || !ep->pace.items || !ep->rto.items || !ep->bitmaps ||
        !ep->room || !selective || !map) {
        ep_free(ep);
        return NULL;
    }
    ep->frame = ep->room + WIRE_IPV6;
    return ep;
}

void ep_free(struct ep *ep)
{
    if (!ep)
        return;
    for (uint32_t i = 0; i < ep->qp_count; i++) {
        halves_free(&ep->qps[i]);
        if (ep->uet) {
            free(ep->uet[i].sent);
            free(ep->uet[i].line);
            free(ep->uet[i].questions);
            free(ep->uet[i].answers);
            free(ep->uet[i].lists);
        }
    }
    for (uint32_t i = 0; ep->sue && i < ep->qp_count; i++)
        free(ep->sue[i].starts);
    free(ep->sue);
    inc_free(ep);
    rx_buffer_free(&ep->rx_buffer);
    for (struct common *next, *each = ep->commons; each; each = next) {
        next = each->next;
        free(each);
    }
    free(ep->qps);
    spares_free(&ep->senders);
    spares_free(&ep->receivers);
    free(ep->pace.items);
    free(ep->rto.items);
    free(ep->alarms.items);
    free(ep->selective);
    free(ep->uet);
    free(ep->entropies);
    free(ep->ways);
    free(ep->reverse);
    free(ep->way_notes);
    free(ep->planes);
    free(ep->bitmaps);
    free(ep->room);
    tss_free(ep->tss);
    idmap_free(&ep->qp_by_number);
    idmap_free(&ep->sue_by_peer);
    free(ep);
}

/* Of the version that this endpoint speaks, and no longer than it has to be. */
static bool is_plain_ip(const struct ep *ep, const uint8_t *ip)
{
    return ep->config.ip == 6 ? ip_is_v6(ip) : ip[0] == 0x45;
}

static const char *qp_problem(const struct ep *ep, const struct ep_qp_config *config)
{
    bool is_v6 = ep->config.ip == 6;
    uint16_t type = is_v6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4;
    uint32_t headers = bth_at(ep) + WIRE_BTH;
    bool with_int = config->data_bytes == headers + WIRE_INT_SHIM + WIRE_INT_MD;
    if (ep->qp_count == ep->qp_room)
        return "there are more queue pairs than room was made for";
    bool is_uet = sprays(&ep->config);
    if (is_uet && (config->number > UINT16_MAX || config->remote > UINT16_MAX))
        return "UET and MRC tell connections apart by 16 bits: there are too many of them";
    if (ep->config.transport == EP_MRC && config->number == MRC_NODE)
        return "with MRC queue pair 2 is the adapter itself";
    if (config->cc >= CC_COUNT || !(CC_REGISTRY[config->cc].users >> ep->config.transport & 1))
        return "its congestion control is for another transport: cc/registry.h has which";
    if (config->number > PSN_MASK || config->remote > PSN_MASK)
        return "queue pair numbers have 24 bits";
    if (config->first_psn > PSN_MASK || config->remote_first_psn > PSN_MASK)
        return "packet sequence numbers have 24 bits";
    if (config->priority > 7)
        return "priorities are 0 to 7";
    if (config->control_bytes != headers || (config->data_bytes != headers && !with_int))
        return "templates are Ethernet, IP of the endpoint's version, UDP and BTH, "
               "and between the last two of data an INT shim and header or nothing";
    if (be16_load(config->data + 12) != type || !is_plain_ip(ep, config->data + WIRE_IP_AT) ||
        be16_load(config->control + 12) != type || !is_plain_ip(ep, config->control + WIRE_IP_AT))
        return "templates are of the endpoint's version of IP, without options";
    if (be16_load(config->data + udp_at(ep) + 2) != (with_int ? ep->config.int_port : is_uet ? ep->format->port : ROCE_PORT))
        return "a data template goes to its transport's UDP port, with INT on board to INT's";
    if (config->port >= ep->config.ports)
        return "there is no such port";
    if (config->planes_bytes != (is_uet ? (ep->config.ports - 1) * ends_bytes(ep) : 0))
        return "for UET every port but the first needs the addresses of both ends there";
    if (cc_hears(config->cc, CC_TELEMETRY) && !with_int)
        return "its congestion control needs a data template with INT on board";
    return NULL;
}

static struct seqset bitmap(struct ep *ep, uint32_t index)
{
    uint32_t bits = bits_for(ep->config.window);
    return (struct seqset){ep->bitmaps + (size_t)index * bits / 64, bits - 1};
}

/* Take out of headers what is one flow's own. */
static struct flow take_flow(uint8_t *headers)
{
    struct flow flow = {0}, nobody = {0};
    uint8_t *ip = headers + WIRE_IP_AT;
    uint32_t bytes = ip_address_bytes(ip);
    const uint8_t *address = ip + ip_source_at(ip) + bytes;
    memcpy(flow.mac, headers, sizeof flow.mac);
    if (ip_is_v6(ip))
        memcpy(flow.label, ip + 2, sizeof flow.label);
    memcpy(flow.address, address, bytes);
    memcpy(flow.port, address + bytes, sizeof flow.port);
    stamp_flow(headers, &nobody);
    return flow;
}

/* Let a queue pair share with those that differ from it in their flow only. */
static bool take_common(struct ep *ep, struct qp *qp, const struct ep_qp_config *config,
                        const char **problem)
{
    bps_t most = ep->uet ? ep_bps(ep) : ep->config.link_bps;
    struct common wanted = {.data_bytes = config->data_bytes,
                            .own_port = config->port,
                            .rate = config->rate && config->rate < most ? config->rate : most};
    struct common *has;
    memcpy(wanted.data, config->data, config->data_bytes);
    memcpy(wanted.control, config->control, config->control_bytes);
    struct flow flow = take_flow(wanted.data), answers = take_flow(wanted.control);
    if (memcmp(&flow, &answers, sizeof flow)) {
        *problem = "both templates are of one flow: the same peer, the same UDP source port";
        return false;
    }
    be24_store(wanted.data + config->data_bytes - WIRE_BTH + 5, 0); /* as `remote` has it */
    be24_store(wanted.control + config->control_bytes - WIRE_BTH + 5, 0);
    for (has = ep->commons; has; has = has->next)
        if (has->rate == wanted.rate && has->own_port == wanted.own_port &&
            has->data_bytes == wanted.data_bytes && !memcmp(has->data, wanted.data, sizeof has->data) &&
            !memcmp(has->control, wanted.control, sizeof has->control))
            break;
    if (!has && (has = malloc(sizeof *has))) {
        wanted.next = ep->commons;
        *has = wanted;
        ep->commons = has;
    }
    qp->common = has;
    qp->flow = flow;
    *problem = has ? NULL : "memory is short";
    return has;
}

struct qp *ep_add_qp(struct ep *ep, const struct ep_qp_config *config, const char **problem)
{
    uint32_t index = ep->qp_count;
    struct qp *qp = &ep->qps[index];

    *problem = qp_problem(ep, config);
    if (*problem)
        return NULL;
    if (!take_common(ep, qp, config, problem))
        return NULL;
    if (!idmap_add(&ep->qp_by_number, config->number, index)) {
        *problem = "a queue pair of that number is there already";
        return NULL;
    }
    ep->qp_count++;
    qp->number = config->number;
    qp->remote = config->remote;
    qp->priority = config->priority;
    qp->ports = ep->uet ? ep->up : (uint8_t)(1u << config->port);
    qp->una = SEQ_START + config->first_psn;
    qp->expected = SEQ_START + config->remote_first_psn;
    qp->cc = config->cc;
    if (ep->config.recovery == EP_SELECTIVE) {
        qp->selective = &ep->selective[index];
        *qp->selective = (struct selective){
            .sacked = bitmap(ep, 2 * index),
            .early = bitmap(ep, 2 * index + 1),
            .alarm_at = NS_NEVER,
            .again_at = NS_NEVER,
            .high = qp->expected,
        };
    }
    if (ep->uet) {
        qp->uet = &ep->uet[index];
        qp->uet->acked = bitmap(ep, 3 * index);
        qp->uet->lost = bitmap(ep, 3 * index + 1);
        qp->uet->got = bitmap(ep, 3 * index + 2);
        qp->uet->entropy = &ep->entropies[(size_t)index * ep->config.ports];
        if (ep->ways)
            qp->uet->ways = &ep->ways[(size_t)index * ep->config.entropies];
        if (ep->reverse)
            qp->uet->reverse = &ep->reverse[(size_t)index * ep->config.ports];
        if (ep->planes) {
            qp->uet->planes = ep->planes + (size_t)index * config->planes_bytes;
            memcpy(qp->uet->planes, config->planes, config->planes_bytes);
        }
    }
    if (ep->sue) {
        *problem = sue_prepare(ep, qp, index);
        if (!*problem && !sending(ep, qp))
            *problem = "memory is short";
        if (*problem)
            return NULL;
    }
    if (ep->uet) {
        uet_prepare(ep, qp, config->base_rtt ? config->base_rtt : ep->config.base_rtt);
        if (ep->tss && (*problem = tss_join(ep, qp, config->sdi, config->data)))
            return NULL;
        if (!sending(ep, qp) || !receiving(ep, qp)) {
            *problem = "memory is short";
            return NULL;
        }
    }
    return qp;
}

void ep_post(struct ep *ep, struct ep_message *message, ns_t now)
{
    if (message->qp->error)
        ep_event(ep, EP_FAILED, message->qp, message, now);
    else
        ep->transport->post(ep, message->qp, message, now);
}

/* What INT put between UDP and BTH. False if it makes no sense. */
static bool take_int(struct packet *packet, const uint8_t *at, const uint8_t *end)
{
    enum { MD_TYPE = 1, NPT_PORT = 1 };
    if (end - at < WIRE_INT_SHIM + WIRE_INT_MD || at[0] >> 4 != MD_TYPE ||
        (at[0] >> 2 & 3) != NPT_PORT)
        return false;
    uint32_t words = at[1], hop_words = at[6] & 0x1F;
    if (words < WIRE_INT_MD / 4 || end - at < (ptrdiff_t)(4 + 4 * words) || at[4] >> 4 != 2)
        return false;
    packet->int_header = at;
    packet->int_bytes = WIRE_INT_SHIM + 4 * words;
    packet->stack = (struct int_stack){
        .words = at + WIRE_INT_SHIM + WIRE_INT_MD,
        .hops = hop_words ? (words - WIRE_INT_MD / 4) / hop_words : 0,
        .hop_words = hop_words,
        .instructions = be16_load(at + WIRE_INT_SHIM + 4),
        .own_instructions = be16_load(at + WIRE_INT_SHIM + 6) == WIRE_INT_DOMAIN
                                ? be16_load(at + WIRE_INT_SHIM + 8)
                                : 0,
        .path = be16_load(at + WIRE_INT_SHIM + 10),
    };
    return true;
}

static bool icrc_matches(const uint8_t *ip, const uint8_t *bth, const struct packet *packet)
{
    uint32_t length = ip_length(ip) - packet->int_bytes;
    uint32_t icrc;
    memcpy(&icrc, packet->body + packet->body_bytes, sizeof icrc);
    return icrc == icrc_of(ip, bth, WIRE_BTH + packet->body_bytes, length, ROCE_PORT);
}

static bool is_whole_udp(const struct ep *ep, const uint8_t *ip)
{
    return is_plain_ip(ep, ip) && ip_protocol(ip) == IP_UDP &&
           (ip_is_v6(ip) || !(be16_load(ip + 6) & IP_FRAGMENT));
}

/* Take a frame apart. Returns the counter of what is wrong with it, NULL if nothing is. */
static uint64_t *take_apart(struct ep *ep, const uint8_t *frame, uint32_t stored,
                            struct packet *packet)
{
    const uint8_t *ip = frame + WIRE_IP_AT, *udp = frame + udp_at(ep), *end = frame + stored;
    const uint8_t *bth = udp + WIRE_UDP;
    uint32_t length = ip_length(ip);
    uint16_t port = be16_load(udp + 2);
    bool whole = ep->config.payload == EP_PAYLOAD_PATTERN;

    if (!is_whole_udp(ep, ip) || (port != ROCE_PORT && port != ep->config.int_port))
        return &ep->counters.rx_other;
    /* A switch that cuts a packet leaves UDP its length. What closed the packet is gone with its end:
     * it cannot be checked, and an ordered adapter makes nothing of it but a count. */
    if (length < (uint32_t)(udp - ip) + be16_load(udp + 4))
        return &ep->counters.rx_cut_packets;
    if (whole) {
        if ((ptrdiff_t)length > end - ip)
            return &ep->counters.rx_malformed;
        end = ip + length;
    }
    if (port != ROCE_PORT) {
        if (!take_int(packet, bth, end))
            return &ep->counters.rx_malformed;
        if (be16_load(bth + 2) != ROCE_PORT)
            return &ep->counters.rx_other;
        bth += packet->int_bytes;
    }
    uint32_t before_body = (uint32_t)(bth - ip) + WIRE_BTH + WIRE_ICRC;
    if (length < before_body || end - bth < WIRE_BTH + (whole ? WIRE_ICRC : 0))
        return &ep->counters.rx_malformed;
    packet->body = bth + WIRE_BTH;
    packet->body_bytes = length - before_body;
    packet->there = (uint32_t)(end - packet->body);
    if (whole && !icrc_matches(ip, bth, packet))
        return &ep->counters.rx_icrc_errors;
    packet->opcode = bth[0];
    packet->pad = bth[1] >> 4 & 3;
    packet->congested = (ip_tos(ip) & 3) == 3;
    packet->echoes = bth[4] & BTH_BECN;
    packet->reflects = bth[4] & BTH_REFLECTS;
    packet->remote = be24_load(bth + 5);
    packet->ack_request = bth[8] & BTH_ACK_REQUEST;
    packet->psn = be24_load(bth + 9);
    return NULL;
}

/* Find the tag that an answer reflects. False if what is there is none. */
static bool take_reflection(struct packet *packet)
{
    packet->answer_bytes = WIRE_AETH;
    packet->tag_bytes = 0; /* what an answer met itself is nobody's concern */
    if (!packet->reflects)
        return true;
    const uint8_t *tag = packet->body + WIRE_AETH;
    uint32_t bytes = packet->there < WIRE_AETH + CSIG_COMPACT ? 0 : csig_bytes(be16_load(tag));
    if (!bytes || packet->body_bytes < WIRE_AETH + bytes || packet->there < WIRE_AETH + bytes)
        return false;
    packet->tag = tag;
    packet->tag_bytes = bytes;
    packet->answer_bytes += bytes;
    return true;
}

/* Whether a CNP is a switch's: it names the peer's queue pair, and behind the BTH the peer. */
static bool is_fast_cnp(const struct packet *packet)
{
    static const uint8_t nobody[WIRE_CNP_PAD];
    return packet->opcode == BTH_CNP && packet->there >= WIRE_CNP_PAD &&
           memcmp(packet->body, nobody, WIRE_CNP_PAD) != 0;
}

/* The queue pair that sends to that of a peer; NULL if there is none. */
static struct qp *sender_to(const struct ep *ep, const struct packet *packet)
{
    uint32_t bytes = ep->config.ip == 6 ? 16 : 4;
    for (uint32_t i = 0; i < ep->qp_count; i++)
        if (ep->qps[i].remote == packet->remote && !memcmp(ep->qps[i].flow.address, packet->body, bytes))
            return &ep->qps[i];
    return NULL;
}

/* `tag_bytes` of a CSIG tag stand before the type that says IP. */
static void receive_roce(struct ep *ep, const uint8_t *frame, uint32_t tag_bytes, uint32_t stored,
                         ns_t now)
{
    struct packet packet = {.tag = frame + WIRE_TYPE_AT - tag_bytes, .tag_bytes = tag_bytes};
    uint64_t *wrong = take_apart(ep, frame, stored, &packet);
    if (wrong) {
        ++*wrong;
        return;
    }
    bool is_switch_s = is_fast_cnp(&packet);
    struct qp *qp = is_switch_s ? sender_to(ep, &packet) : qp_find(ep, packet.remote);
    uint32_t reth = opcode_starts(packet.opcode) ? WIRE_RETH : 0;
    ep->counters.rp_fast_cnps += is_switch_s;
    if (!qp || qp->error || (!is_switch_s && !qp_is_from_peer(qp, frame + WIRE_IP_AT)))
        ep->counters.rx_no_queue_pair++;
    else if (opcode_is_write(packet.opcode) && packet.there >= reth)
        responder_data(ep, qp, &packet, now);
    else if (packet.opcode == BTH_ACK && packet.there >= WIRE_AETH && take_reflection(&packet))
        requester_answer(ep, qp, &packet, now);
    else if (packet.opcode == BTH_CNP)
        requester_cnp(ep, qp, now);
    else
        ep->counters.rx_malformed++;
}

static bool is_uet(const struct ep *ep, const uint8_t *frame)
{
    return is_whole_udp(ep, frame + WIRE_IP_AT) && be16_load(frame + udp_at(ep) + 2) == ep->format->port;
}

/* The bytes of a frame's CSIG tag. */
static uint32_t tag_of(const uint8_t *frame, uint32_t stored)
{
    return stored < WIRE_ETHERNET + CSIG_WIDE ? 0 : csig_bytes(be16_load(frame + WIRE_TYPE_AT));
}

static void take(struct ep *ep, const uint8_t *frame, uint32_t stored, ns_t now)
{
    uint16_t ours = ep->config.ip == 6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4;
    if (ep->sue) {
        sue_take(ep, frame, stored, now);
        return;
    }
    uint32_t tag = tag_of(frame, stored);
    frame += tag;
    stored -= tag;
    if (stored < bth_at(ep) || be16_load(frame + WIRE_TYPE_AT) != ours)
        ep->counters.rx_other++;
    else if (ep->jobs && inc_is(ep, frame, stored))
        inc_take(ep, frame, stored, now);
    else if (!ep->uet)
        receive_roce(ep, frame, tag, stored, now);
    else if (is_uet(ep, frame))
        uet_take(ep, frame, stored, now);
    else
        ep->counters.rx_other++;
}

static bool is_pause(const uint8_t *frame, uint32_t stored)
{
    return stored >= 34 && be16_load(frame + 12) == ETHERTYPE_MAC_CONTROL &&
           be16_load(frame + 14) == PFC_OPCODE;
}

/* Whether who sent a frame stands still when the receive buffer asks for it. */
static bool is_pausable(const struct ep *ep, const uint8_t *frame, uint32_t stored)
{
    uint32_t tag = tag_of(frame, stored);
    frame += tag;
    stored -= tag;
    uint16_t type = stored >= WIRE_IP_AT + 20 ? be16_load(frame + WIRE_TYPE_AT) : 0;
    if (type == ETHERTYPE_SUNH)
        return ep->config.pause_dscps >> (frame[WIRE_IP_AT] >> 2) & 1;
    if (type != ETHERTYPE_IPV4 && type != ETHERTYPE_IPV6)
        return false;
    return ep->config.pause_dscps >> (ip_tos(frame + WIRE_IP_AT) >> 2) & 1;
}

void ep_receive(struct ep *ep, uint8_t port, const uint8_t *frame, uint32_t stored, uint32_t wire,
                ns_t now)
{
    ep->lanes[port].counters.rx_packets++;
    ep->lanes[port].counters.rx_bytes += wire;
    ep->counters.rx_packets++;
    ep->counters.rx_bytes += wire;
    if (is_pause(frame, stored)) {
        ep->counters.rx_pfc_frames++;
        schedule_pause(ep, port, frame, now);
    } else if (credit_is_word(frame, stored)) {
        if (credit_hear(&ep->credit, frame))
            ep->counters.rx_credit_grants++;
        else
            ep->counters.rx_foreign_credits++;
    } else if (!ep->config.rx_buffer.rate) {
        take(ep, frame, stored, now);
    } else {
        bool may_be_lost = ep->config.pause_classes && !is_pausable(ep, frame, stored);
        if (rx_buffer_put(&ep->rx_buffer, frame, stored, wire, may_be_lost, now))
            return;
        ep->counters.rx_discards++;
        ep->counters.rx_discards_lossless += ep->config.pause_classes && !may_be_lost;
    }
}

ns_t ep_service(struct ep *ep, ns_t now)
{
    uint32_t stored, wire;
    const uint8_t *frame;
    while ((frame = rx_buffer_take(&ep->rx_buffer, now, &stored, &wire)))
        take(ep, frame, stored, now);
    if (ep->repeat_at <= now)
        mrc_repeat(ep, now);
    return schedule_all(ep, now);
}

const struct ep_counters *ep_counters(struct ep *ep, ns_t now)
{
    for (uint8_t i = 0; i < 8 * ep->config.ports; i++) {
        struct lane *lane = &ep->lanes[i / 8];
        uint8_t priority = i % 8;
        ns_t *since = &lane->paused_since[priority], until = lane->paused_until[priority];
        until = until < now ? until : now;
        if (*since == NS_NEVER)
            continue;
        note_paused(ep, lane, priority, until - *since);
        *since = until < now ? NS_NEVER : now;
    }
    return &ep->counters;
}

struct ep_port_counters ep_port_counters(const struct ep *ep, uint8_t port)
{
    return ep->lanes[port].counters;
}

const struct ep_config *ep_get_config(const struct ep *ep) { return &ep->config; }

void ep_set_link(struct ep *ep, uint8_t port, bps_t link_bps)
{
    ep->lanes[port].rate = link_bps;
    if (ep->config.ports == 1)
        ep->config.link_bps = link_bps;
}

ns_t ep_port_free(const struct ep *ep, uint8_t port) { return ns_after_ps(ep->lanes[port].free); }

ns_t ep_occupy(struct ep *ep, uint8_t port, uint32_t wire, ns_t now)
{
    struct lane *lane = &ep->lanes[port];
    ps_t at = lane->free > ps_of_ns(now) ? lane->free : ps_of_ns(now);
    lane->free = at + ps_for_bytes(wire + ep->config.overhead_bytes, lane->rate);
    return ns_after_ps(at);
}

void ep_set_up(struct ep *ep, uint8_t port, bool is_up, ns_t now)
{
    uint8_t bit = (uint8_t)(1u << port), before = ep->up;
    if (is_up)
        ep->asks_again = now; /* what was asked meanwhile is lost */
    if (ep->config.ports == 1)
        return;
    ep->up = is_up ? before | bit : before & (uint8_t)~bit;
    for (uint32_t i = 0; ep->up != before && ep->transport->ports_changed && i < ep->qp_count; i++)
        ep->transport->ports_changed(ep, &ep->qps[i], now);
    if (ep->up != before && ep->config.port_status)
        mrc_ports_changed(ep, now);
}

const char *ep_steer(struct ep *ep, struct qp *qp, uint32_t entropy, const uint8_t *list)
{
    if (!ep->uet || ep->config.ip != 6)
        return "only what is sprayed over IPv6 is steered";
    if (entropy >= ep->config.entropies)
        return "there is no such entropy";
    if (!qp->uet->lists)
        qp->uet->lists = calloc(ep->config.entropies, WIRE_IPV6_ADDRESS);
    if (!qp->uet->lists)
        return "memory is short";
    memcpy(qp->uet->lists + (size_t)entropy * WIRE_IPV6_ADDRESS, list, WIRE_IPV6_ADDRESS);
    return NULL;
}

bool ep_deny(struct ep *ep, struct qp *qp, const uint64_t *denied, ns_t now)
{
    return ep->uet && uet_deny(ep, qp, denied, now);
}

const struct ep_way_note *ep_way_notes(const struct ep *ep, uint32_t *count)
{
    *count = ep->n_way_notes;
    return ep->way_notes;
}

const char *way_state_name(uint16_t state)
{
    static const char *const STATES[] = {"good", "skip", "bad", "denied"};
    return state < sizeof STATES / sizeof *STATES ? STATES[state] : "?";
}

uint32_t qp_number(const struct qp *qp) { return qp->number; }

enum ep_error qp_error(const struct qp *qp) { return qp->error; }

struct qp *ep_find_qp(const struct ep *ep, uint32_t number)
{
    return qp_find(ep, number);
}

void qp_state(const struct qp *qp, ns_t now, struct qp_state *state)
{
    const struct sending *out = qp->out;
    uint64_t sent = out ? out->sent : qp->una;
    *state = (struct qp_state){
        .rate = qp->common->rate,
        .in_flight = sent - qp->una,
        .waiting = qp_posted(qp) - sent,
        .timeout_at = out ? out->rto_at : NS_NEVER,
        .has_turn = qp->in_ring || qp->in_pace,
        .has_asked = qp->in && qp->in->nak_sent,
    };
    struct cc *cc = out && out->cc && out->cc->ops->rate ? cc_copy(out->cc) : NULL;
    if (cc)
        state->rate = cc->ops->rate(cc, now);
    free(cc);
}

/* A block of memory, by words of eight bytes. */
static void tell_words(const void *block, size_t bytes, enum ep_trait trait, ep_tell tell, void *context)
{
    for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, (const uint8_t *)block + at, bytes - at < sizeof word ? bytes - at : sizeof word);
        tell(context, trait, word);
    }
}

/* A half that was kept. */
static void tell_sending(const struct qp *qp, ep_tell tell, void *context)
{
    const struct sending *out = qp->out;
    const uint64_t growing[] = {out->acked,     out->next,   out->sent, out->posted,
                                out->requested, out->rto_at, out->rto,  out->silent};
    for (unsigned i = 0; i < sizeof growing / sizeof *growing; i++)
        tell(context, EP_GROWS, growing[i]);
    tell(context, EP_SAME, (uint64_t)(int64_t)out->deficit);
    tell(context, EP_SAME, out->since_request);
    tell(context, EP_SAME, out->retries);
    if (!out->cc)
        return;
    tell_words(&out->cc->window, sizeof out->cc->window, EP_SAME, tell, context);
    tell(context, EP_GROWS, out->cc->time_from);
    tell_words(out->cc->state, CC_REGISTRY[qp->cc].ops->bytes, EP_TIME, tell, context);
}

bool ep_traits(const struct ep *ep, ep_tell tell, void *context)
{
    if (ep->uet || ep->jobs)
        return false;
    /* All but the stores of halves, of which it is all the same which is the next to be taken. */
    enum { STORES = offsetof(struct ep, senders), REST = offsetof(struct ep, selective) };
    _Static_assert(REST - STORES == 2 * sizeof(struct spares), "nothing else is between");
    tell_words(ep, STORES, EP_GROWS, tell, context);
    tell_words((const uint8_t *)ep + REST, sizeof *ep - REST, EP_GROWS, tell, context);
    for (uint32_t i = 0; i < ep->qp_count; i++) {
        const struct qp *qp = &ep->qps[i];
        if (qp->head)
            return false;
        tell_words(qp, sizeof *qp, EP_GROWS, tell, context);
        if (qp->out)
            tell_sending(qp, tell, context);
        if (qp->in)
            tell_words(qp->in, sizeof *qp->in, EP_GROWS, tell, context);
    }
    return true;
}

const char *ep_error_name(enum ep_error error)
{
    static const char *const ERRORS[] = {
        [EP_OK] = "ok",
        [EP_RETRY_EXCEEDED] = "retry-exceeded",
        [EP_REMOTE_ACCESS] = "remote-access",
        [EP_REMOTE_INVALID] = "remote-invalid-request",
        [EP_REMOTE_OPERATION] = "remote-operation",
        [EP_LOCAL_PROTECTION] = "local-protection",
        [EP_LOCAL_INVALID] = "local-invalid-request",
        [EP_LOCAL_DATA] = "local-data",
    };
    return (size_t)error < sizeof ERRORS / sizeof *ERRORS ? ERRORS[error] : "unknown";
}
