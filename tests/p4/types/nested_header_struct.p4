// A header with a struct inside; signed and boolean fields of headers.
#include "../include/before.p4"

struct inner_t {
    bit<4> low;
    bit<4> high;
}

header mixed_t {
    bool flag;
    int<7> number;
    inner_t inner;
}

struct headers_t {
    mixed_t mixed;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.mixed);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.mixed.flag) {
            hdr.mixed.number = -hdr.mixed.number;
        } else if (hdr.mixed.number < 0) {
            hdr.mixed.flag = true;
        }
        hdr.mixed.inner = { hdr.mixed.inner.high, hdr.mixed.inner.low };
    }
}

#include "../include/after.p4"
