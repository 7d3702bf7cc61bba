// Errors can be kept and compared.
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
    Odd
}

parser P(packet_in pkt, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.h);
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        error e = hdr.h.x == 1 ? error.Odd : error.NoError;
        if (e == error.Odd) {
            hdr.h.y = 9;
        }
    }
}

#include "../include/main.p4"
