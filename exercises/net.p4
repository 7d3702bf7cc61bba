// What the lessons' programs share: Ethernet, IPv4 and UDP, taken apart and put together again.
//
// A lesson declares `struct metadata_t`, includes this file, writes its ingress and egress, and ends
// with NET_SWITCH(ingress, egress).

#ifndef NET_P4
#define NET_P4

#include <core.p4>
#include <v1model.p4>

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8>  PROTOCOL_UDP   = 17;

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<6>  dscp;
    bit<2>  ecn;
    bit<16> total_len;
    bit<16> identification;
    bit<3>  flags;
    bit<13> frag_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> hdr_checksum;
    bit<32> src_addr;
    bit<32> dst_addr;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

// A pause frame of 802.1Qbb after its Ethernet header; the padding makes it 60 bytes.
header pfc_t {
    bit<16>  opcode;        // 0x0101
    bit<16>  classes;       // bit i: timer i counts
    bit<48>  timers012;
    bit<16>  timer3;        // of the lossless class, in quanta of 512 bit times; 0 ends the pause
    bit<64>  timers4567;
    bit<208> padding;
}

struct headers_t {
    ethernet_t ethernet;
    pfc_t      pfc;
    ipv4_t     ipv4;
    udp_t      udp;
}

parser net_parser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            0x8808: parse_pfc;
            default: accept;
        }
    }

    state parse_pfc {
        packet.extract(hdr.pfc);
        transition accept;
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) {
            PROTOCOL_UDP: parse_udp;
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition accept;
    }
}

control net_verify(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control net_checksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_len,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.frag_offset, hdr.ipv4.ttl,
              hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr },
            hdr.ipv4.hdr_checksum, HashAlgorithm.csum16);
    }
}

control net_deparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.pfc);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
    }
}

#define NET_SWITCH(ingress, egress) \
    V1Switch(net_parser(), net_verify(), ingress(), egress(), net_checksum(), net_deparser()) main;

#endif
