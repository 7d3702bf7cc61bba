// Parse: Ethernet, IPv4 without options, UDP. Whatever else follows travels on as payload.
//
// Reads:  the frame.
// Writes: hdr; a frame too short for its headers, or an IPv4 header with options, leaves a
//         parser error, which fabric.p4 turns into a counted drop.

#ifndef PARSER_P4
#define PARSER_P4

#include "headers.p4"

error { Ipv4WithOptions }

parser fabric_parser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.ihl == 5, error.Ipv4WithOptions);
        // Only a first fragment starts with ports; the others must not have data taken for them.
        transition select(hdr.ipv4.frag_offset, hdr.ipv4.protocol) {
            (0, PROTOCOL_UDP): parse_udp;
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition accept;
    }
}

control fabric_deparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
    }
}

#endif
