/* Headers and metadata of the fixed-function switch. */
#ifndef FIXED_HEADERS_P4
#define FIXED_HEADERS_P4

#include "fixed_types.p4"

@controller_header("packet_in")
FOR_SDN
header packet_in_h {
    @id(1) port_id_t ingress_port;
    @id(2) port_id_t target_egress_port;
    @id(3) @padding bit<6> unused_pad;
}

@controller_header("packet_out")
FOR_SDN
header packet_out_h {
    @id(1) port_id_t egress_port;
    @id(2) bit<1> submit_to_ingress;
    @id(3) @padding bit<6> unused_pad;
}

header ethernet_h {
    mac_t dst;
    mac_t src;
    bit<16> type_;
}

header vlan_h {
    bit<3> pcp;
    bit<1> dei;
    vlan_id_t id;
    bit<16> type_;
}

header ipv4_h {
    bit<4> version;
    bit<4> ihl;
    bit<6> dscp;
    bit<2> ecn;
    bit<16> total_len;
    bit<16> identification;
    bit<3> flags;
    bit<13> fragment;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    ipv4_t src;
    ipv4_t dst;
}

header ipv6_h {
    bit<4> version;
    bit<6> dscp;
    bit<2> ecn;
    bit<20> flow;
    bit<16> payload_len;
    bit<8> next;
    bit<8> hop_limit;
    ipv6_t src;
    ipv6_t dst;
}

header gre_h {
    bit<1> has_checksum;
    bit<1> has_routing;
    bit<1> has_key;
    bit<1> has_sequence;
    bit<9> reserved;
    bit<3> version;
    bit<16> protocol;
}

header udp_h {
    bit<16> sport;
    bit<16> dport;
    bit<16> len;
    bit<16> checksum;
}

header tcp_h {
    bit<16> sport;
    bit<16> dport;
    bit<32> seq;
    bit<32> ack;
    bit<4> offset;
    bit<4> reserved;
    bit<8> flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
}

header icmp_h {
    bit<8> type_;
    bit<8> code;
    bit<16> checksum;
}

header arp_h {
    bit<16> hardware;
    bit<16> protocol;
    bit<8> hardware_len;
    bit<8> protocol_len;
    bit<16> operation;
    mac_t sender_mac;
    ipv4_t sender;
    mac_t target_mac;
    ipv4_t target;
}

/* What goes in front of a mirrored packet: where it came in, where it was to leave. */
header ipfix_h {
    bit<16> version;
    bit<16> len;
    bit<32> sequence;
    bit<16> ingress_port;
    bit<16> egress_port;
}

struct headers_t {
    packet_in_h packet_in;
    packet_out_h packet_out;
    ethernet_h mirror_ethernet;
    ipv6_h mirror_ipv6;
    udp_h mirror_udp;
    ipfix_h ipfix;
    ethernet_h ethernet;
    vlan_h vlan;
    ipv6_h tunnel_ipv6;
    gre_h tunnel_gre;
    ipv4_h ipv4;
    ipv6_h ipv6;
    icmp_h icmp;
    tcp_h tcp;
    udp_h udp;
    arp_h arp;
}

struct rewrites_t {
    bit<1> decrement_ttl;
    bit<1> src_mac;
    bit<1> dst_mac;
    bit<1> vlan;
}

struct mirror_t {
    bit<1> wanted;
    @field_list(copies_t.mirrored)
    mirror_session_id_t session;
    mac_t src_mac;
    mac_t dst_mac;
    ipv6_t src;
    ipv6_t dst;
    bit<16> sport;
    bit<8> hop_limit;
}

struct meta_t {
    @field_list(copies_t.punted, copies_t.mirrored)
    port_id_t ingress_port;
    @field_list(copies_t.punted, copies_t.mirrored)
    port_id_t target_port;
    vrf_id_t vrf;
    vlan_id_t vlan;
    bit<1> admitted;
    bit<1> is_ip;
    bit<1> marked_to_copy;
    bit<1> acl_drops;
    bit<1> has_group;
    bit<1> has_route;
    bit<1> tunnelled;
    bit<16> sport;
    bit<16> dport;
    bit<6> dscp;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> hash_base;
    acl_label_t label;
    colour_t colour;
    bit<2> metered;
    wcmp_group_id_t group;
    nexthop_id_t nexthop;
    tunnel_id_t tunnel;
    router_interface_id_t interface;
    neighbour_id_t neighbour;
    mac_t src_mac;
    mac_t dst_mac;
    ipv6_t tunnel_src;
    ipv6_t tunnel_dst;
    rewrites_t rewrites;
    mirror_t mirror;
}

#endif
