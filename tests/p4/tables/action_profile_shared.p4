// Two tables of one action profile.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action_profile(16) members;

    action mark(bit<8> by) {
        hdr.data.b4 = by;
    }
    table first {
        key = {
            hdr.data.b1: exact;
        }
        actions = {
            mark;
            NoAction;
        }
        implementation = members;
    }
    table second {
        key = {
            hdr.data.b2: ternary;
        }
        actions = {
            mark;
            NoAction;
        }
        implementation = members;
    }
    apply {
        std.egress_spec = 2;
        if (!first.apply().hit) {
            second.apply();
        }
    }
}

#include "../include/after.p4"
