// A failed verify stops the parser with its error.
#include <v1model.p4>

header h_t {
    bit<8> x;
    bit<8> y;
}

struct headers {
    h_t h;
    h_t more;
}

struct metadata {}

error {
    TooLarge
}

parser P(packet_in pkt, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.h);
        verify(hdr.h.x < 10, error.TooLarge);
        pkt.extract(hdr.more);
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (std.parser_error == error.TooLarge) {
            hdr.h.y = 0xEE;
        }
        if (hdr.more.isValid()) {
            hdr.more.y = 0x11;
        }
    }
}

#include "../include/main.p4"
