// Of ternary entries that match, the one with the largest priority wins.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action mark(bit<8> by) {
        hdr.data.b1 = by;
    }
    table acl {
        key = {
            hdr.data.w1: ternary;
            hdr.data.h1: ternary;
        }
        actions = {
            mark;
            NoAction;
        }
        default_action = NoAction();
    }
    apply {
        std.egress_spec = 2;
        acl.apply();
    }
}

#include "../include/after.p4"
