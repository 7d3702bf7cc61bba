// What a packet is made of, and what a switch notes about it on its way through.

#ifndef HEADERS_P4
#define HEADERS_P4

#include "types.p4"

header ethernet_t {
    mac_t   dst_addr;
    mac_t   src_addr;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4>      version;
    bit<4>      ihl;
    bit<6>      dscp;
    bit<2>      ecn;
    bit<16>     total_len;
    bit<16>     identification;
    bit<3>      flags;
    bit<13>     frag_offset;
    bit<8>      ttl;
    bit<8>      protocol;
    bit<16>     hdr_checksum;
    ipv4_addr_t src_addr;
    ipv4_addr_t dst_addr;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
}

struct metadata_t {
    drop_reason_t drop_reason;    // anything but NONE ends the packet
    group_t       group;          // route.p4 to path.p4
    member_t      group_size;
    member_t      member;
    port_t        out_port;       // route.p4 or path.p4 to forward.p4
    mac_t         next_mac;
}

#endif
