// Headers are taken from the packet in order; what is not parsed follows behind them untouched.
#include "../include/before.p4"

header byte_t {
    bit<8> value;
}

struct headers_t {
    byte_t first;
    data_t data;
    byte_t last;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.first);
        packet.extract(hdr.data);
        packet.extract(hdr.last);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.first.value = hdr.last.value;
        hdr.data.w1 = hdr.data.w2;
    }
}

#include "../include/after.p4"
