// A loop in the parser fills a stack until a mark; last is the element filled last.
#include "../include/before.p4"

header label_t {
    bit<20> label;
    bit<3> class;
    bit<1> bottom;
    bit<8> ttl;
}

struct headers_t {
    label_t[4] labels;
}

struct metadata_t {
    bit<20> bottom_label;
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.labels.next);
        transition select(hdr.labels.last.bottom) {
            0: start;
            1: done;
        }
    }
    state done {
        meta.bottom_label = hdr.labels.last.label;
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.labels[0].label = meta.bottom_label;
    }
}

#include "../include/after.p4"
