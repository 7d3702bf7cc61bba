// Keys of all kinds in one table: the largest priority decides.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action mark(bit<8> by) {
        hdr.data.b4 = by;
    }
    table marks {
        key = {
            hdr.data.b1: exact;
            hdr.data.w1: lpm;
            hdr.data.h1: ternary;
            hdr.data.h2: range;
        }
        actions = {
            mark;
        }
    }
    apply {
        std.egress_spec = 2;
        marks.apply();
    }
}

#include "../include/after.p4"
