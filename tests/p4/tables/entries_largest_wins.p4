// Entries with written priorities of which the largest wins.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action mark(bit<8> by) {
        hdr.data.b4 = by;
    }
    table marks {
        key = {
            hdr.data.h1: ternary;
        }
        actions = {
            mark;
        }
        largest_priority_wins = true;
        entries = {
            priority = 10: 0x0011: mark(0x10);
            priority = 30: 0x0010 &&& 0x00f0: mark(0x30);
            priority = 20: 0x0001 &&& 0x000f: mark(0x20);
        }
    }
    apply {
        std.egress_spec = 2;
        marks.apply();
    }
}

#include "../include/after.p4"
