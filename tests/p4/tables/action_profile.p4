// A table whose entries point to members of an action profile.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action_profile(16) members;

    action mark(bit<8> by) {
        hdr.data.b1 = by;
    }
    action swap() {
        bit<32> w1 = hdr.data.w1;
        hdr.data.w1 = hdr.data.w2;
        hdr.data.w2 = w1;
    }
    table marks {
        key = {
            hdr.data.h1: exact;
        }
        actions = {
            mark;
            swap;
            NoAction;
        }
        implementation = members;
        default_action = NoAction();
    }
    apply {
        std.egress_spec = 2;
        if (marks.apply().hit) {
            hdr.data.b2 = 1;
        }
    }
}

#include "../include/after.p4"
