// Cases with masks: the first that matches is taken, whatever follows.
#include "../include/before.p4"

struct headers_t {
    data_t data;
}

struct metadata_t {
    bit<8> path;
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.data);
        transition select(hdr.data.h1) {
            0x8000 &&& 0x8000: high;
            0x0010 &&& 0x00f0: ten;
            0x0011: never;
            0x0000 &&& 0xfff0: low;
            _: other;
        }
    }
    state high {
        meta.path = 1;
        transition accept;
    }
    state ten {
        meta.path = 2;
        transition accept;
    }
    state never {
        meta.path = 3;
        transition accept;
    }
    state low {
        meta.path = 4;
        transition accept;
    }
    state other {
        meta.path = 5;
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.b1 = meta.path;
    }
}

#include "../include/after.p4"
