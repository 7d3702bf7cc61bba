// Ranges take in both ends; the larger priority decides where they overlap.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action mark(bit<8> by) {
        hdr.data.b1 = by;
    }
    table ports {
        key = {
            hdr.data.h1: range;
            hdr.data.b2: exact;
        }
        actions = {
            mark;
        }
    }
    apply {
        std.egress_spec = 2;
        ports.apply();
    }
}

#include "../include/after.p4"
