// An optional key matches a value, or anything.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action mark(bit<8> by) {
        hdr.data.b1 = by;
    }
    table flows {
        key = {
            hdr.data.w1: optional;
            hdr.data.w2: optional;
        }
        actions = {
            mark;
        }
    }
    apply {
        std.egress_spec = 2;
        flows.apply();
    }
}

#include "../include/after.p4"
