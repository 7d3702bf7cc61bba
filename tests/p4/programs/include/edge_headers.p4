/* What is on the wire, and what goes along with a packet. */
#ifndef EDGE_HEADERS_P4
#define EDGE_HEADERS_P4

#include "edge_types.p4"

PACKED(ethernet) {
    mac_t dst;
    mac_t src;
    ether_type_t type_;
}

PACKED(vlan) {
    bit<3> pcp;
    bit<1> dei;
    vlan_id_t id;
    ether_type_t type_;
}

PACKED(ipv4) {
    bit<4> version;
    bit<4> ihl;
    dscp_t dscp;
    bit<2> ecn;
    bit<16> length;
    bit<16> identification;
    bit<1> reserved;
    bit<1> dont_fragment;
    bit<1> more_fragments;
    bit<13> fragment;
    bit<8> ttl;
    protocol_t protocol;
    bit<16> checksum;
    ipv4_t src;
    ipv4_t dst;
}

PACKED(ipv6) {
    bit<4> version;
    dscp_t dscp;
    bit<2> ecn;
    bit<20> flow;
    bit<16> length;
    protocol_t next;
    bit<8> hops;
    ipv6_t src;
    ipv6_t dst;
}

PACKED(tcp) {
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

PACKED(udp) {
    bit<16> sport;
    bit<16> dport;
    bit<16> length;
    bit<16> checksum;
}

PACKED(icmp) {
    bit<8> type_;
    bit<8> code;
    bit<16> checksum;
}

PACKED(arp) {
    bit<16> hardware;
    bit<16> protocol;
    bit<8> hardware_length;
    bit<8> protocol_length;
    bit<16> operation;
    mac_t sender_mac;
    ipv4_t sender;
    mac_t target_mac;
    ipv4_t target;
}

@controller_header("packet_in")
PACKED(packet_in) {
    @id(1) port_id_t ingress_port;
    @id(2) port_id_t target_egress_port;
    @id(3) @padding bit<6> unused;
}

@controller_header("packet_out")
PACKED(packet_out) {
    @id(1) port_id_t egress_port;
    @id(2) bit<1> submit_to_ingress;
    @id(3) @padding bit<6> unused;
}

header_union transport_u {
    tcp_h tcp;
    udp_h udp;
    icmp_h icmp;
}

struct headers_t {
    packet_in_h packet_in;
    packet_out_h packet_out;
    ethernet_h ethernet;
    vlan_h vlan;
    ipv4_h outer_ipv4;
    ipv4_h ipv4;
    ipv6_h ipv6;
    arp_h arp;
    transport_u transport;
}

struct rewrite_t {
    mac_t src;
    mac_t dst;
    vlan_id_t vlan;
    bool decrement_ttl;
}

struct flow_t<A> {
    A src;
    A dst;
    bit<16> sport;
    bit<16> dport;
}

struct meta_t {
    @field_list(copies_t.mirrored, copies_t.punted) port_id_t ingress_port;
    @field_list(copies_t.punted) port_id_t wanted_port;
    vrf_id_t vrf;
    vlan_id_t vlan;
    bit<1> admitted;
    bit<1> from_controller;
    dscp_t dscp;
    bit<16> sport;
    bit<16> dport;
    bit<14> hash;
    bool is_ip;
    bool use_group;
    verdict_t verdict;
    colour_t colour;
    bit<2> meter_colour;
    group_id_t group;
    nexthop_id_t nexthop;
    interface_id_t interface;
    neighbour_id_t neighbour;
    mirror_id_t mirror;
    queue_id_t queue;
    rewrite_t rewrite;
    flow_t<bit<32>> folded;
}

#endif
