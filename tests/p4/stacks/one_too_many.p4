// One element too many is a parser error; the packet goes on with those that fit.
#include <v1model.p4>

header h_t {
    bit<1> more;
    bit<7> n;
}

struct headers {
    h_t[2] s;
}

struct metadata {}

parser P(packet_in pkt, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.s.next);
        transition select(hdr.s.last.more) {
            1: start;
            default: accept;
        }
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (std.parser_error == error.StackOutOfBounds) {
            hdr.s[0].n = 0x7F;
        }
    }
}

#include "../include/main.p4"
