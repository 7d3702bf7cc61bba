/* Everything on the wire between a base station and a data network, and what goes along with it. */
#ifndef MOBILE_HEADERS_P4
#define MOBILE_HEADERS_P4

#include "mobile_types.p4"

@controller_header("packet_in")
header packet_in_h {
    @id(1) port_num_t ingress_port;
    @id(2) bit<4> reason;
    @id(3) bit<3> unused;
}

@controller_header("packet_out")
header packet_out_h {
    @id(1) port_num_t egress_port;
    @id(2) bit<1> do_forwarding;
    @id(3) bit<6> unused;
}

header ethernet_h {
    mac_t dst;
    mac_t src;
}

header eth_type_h {
    bit<16> value;
}

header vlan_tag_h {
    bit<16> eth_type;
    bit<3> pcp;
    bit<1> dei;
    vlan_id_t id;
}

header mpls_h {
    mpls_label_t label;
    bit<3> tc;
    bit<1> bottom;
    bit<8> ttl;
}

struct ip_class_t {
    dscp_t dscp;
    bit<2> ecn;
}

header ipv4_h {
    bit<4> version;
    bit<4> ihl;
    ip_class_t class;
    bit<16> total_len;
    bit<16> identification;
    bit<3> flags;
    bit<13> fragment;
    bit<8> ttl;
    ip_proto_t protocol;
    bit<16> checksum;
    ipv4_t src;
    ipv4_t dst;
}

header ipv6_h {
    bit<4> version;
    ip_class_t class;
    bit<20> flow;
    bit<16> payload_len;
    ip_proto_t next;
    bit<8> hop_limit;
    ipv6_t src;
    ipv6_t dst;
}

header tcp_h {
    l4_port_t sport;
    l4_port_t dport;
    bit<32> seq;
    bit<32> ack;
    bit<4> offset;
    bit<3> reserved;
    bit<9> flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
}

header udp_h {
    l4_port_t sport;
    l4_port_t dport;
    bit<16> len;
    bit<16> checksum;
}

header icmp_h {
    bit<8> type_;
    bit<8> code;
    bit<16> checksum;
}

header gtpu_h {
    bit<3> version;
    bit<1> protocol_type;
    bit<1> spare;
    bit<1> has_extension;
    bit<1> has_sequence;
    bit<1> has_npdu;
    bit<8> message;
    bit<16> len;
    teid_t teid;
}

header gtpu_options_h {
    bit<16> sequence;
    bit<8> npdu;
    bit<8> next_extension;
}

/* PDU session container: which QoS flow of the session a packet is of. */
header gtpu_psc_h {
    bit<8> len;
    bit<4> type_;
    bit<4> spare0;
    bit<1> ppp;
    bit<1> rqi;
    qfi_t qfi;
    bit<8> next_extension;
}

struct gtp_stack_t {
    ipv4_h ipv4;
    udp_h udp;
    gtpu_h gtpu;
    gtpu_options_h options;
    gtpu_psc_h psc;
}

struct headers_t {
    packet_out_h packet_out;
    packet_in_h packet_in;
    ethernet_h ethernet;
    vlan_tag_h[2] vlan;
    eth_type_h eth_type;
    mpls_h mpls;
    gtp_stack_t outer;
    ipv4_h ipv4;
    ipv6_h ipv6;
    tcp_h tcp;
    udp_h udp;
    icmp_h icmp;
}

struct upf_meta_t {
    bool wanted;
    bool encapsulates;
    bool with_psc;
    interface_t from;
    upf_drop_t drop;
    ipv4_t ue;
    bit<8> app;
    bit<8> session_meter_set;
    teid_t teid;
    qfi_t qfi;
    peer_id_t peer;
    ipv4_t tunnel_src;
    ipv4_t tunnel_dst;
    l4_port_t tunnel_sport;
    upf_counter_id_t counter;
    upf_meter_id_t app_meter;
    upf_meter_id_t session_meter;
}

struct lookup_t {
    bit<1> is_ip;
    ip_proto_t protocol;
    ipv4_t src;
    ipv4_t dst;
    l4_port_t sport;
    l4_port_t dport;
}

struct meta_t {
    @field_list(copied_t.to_cpu, copied_t.reported)
    port_num_t ingress_port;
    @field_list(copied_t.to_cpu)
    bit<4> reason;
    forwarding_t kind;
    bool skips_forwarding;
    bool skips_next;
    next_id_t next;
    vlan_id_t vlan;
    bit<3> vlan_pcp;
    mpls_label_t push_label;
    mpls_label_t was_label;
    bit<8> mpls_ttl;
    bool pops_vlan;
    bool is_multicast;
    slice_id_t slice;
    tc_t tc;
    packet_colour_t colour;
    bit<2> metered;
    dscp_t dscp;
    lookup_t lookup;
    upf_meta_t upf;
    bit<16> gtp_payload;
}

/* What the controller hears when a packet waits for a handset that sleeps. */
struct downlink_notice_t {
    ipv4_t ue;
    upf_counter_id_t counter;
    port_num_t came_by;
}

#endif
