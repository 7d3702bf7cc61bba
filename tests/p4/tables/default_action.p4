// A default action with arguments, and a table that has no entry for what comes.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action mark(bit<8> first, bit<8> second) {
        hdr.data.b1 = first;
        hdr.data.b2 = second;
    }
    action other() {
        hdr.data.b3 = 0x33;
    }
    table marks {
        key = {
            hdr.data.h1: exact;
        }
        actions = {
            mark;
            other;
        }
        default_action = mark(0xaa, 0xbb);
    }
    apply {
        std.egress_spec = 2;
        marks.apply();
    }
}

#include "../include/after.p4"
