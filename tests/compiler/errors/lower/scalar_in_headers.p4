#include <v1model.p4>

header h_t {
    bit<8> b;
}

struct headers {
    h_t h;
    bit<8> x;
}

struct metadata {}

parser P(packet_in pkt, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.h);
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {}
}

#define OWN_DEPARSER
control Deparse(packet_out pkt, in headers hdr) {
    apply {
        pkt.emit(hdr.h);
    }
}

#include "../../../p4/include/main.p4"
