// Entries of the program itself, of every match kind; of several that match the first written wins.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action mark(bit<8> by) {
        hdr.data.b4 = by;
    }
    table exacts {
        key = {
            hdr.data.b1: exact;
            hdr.data.b2: exact;
        }
        actions = {
            mark;
        }
        const entries = {
            (1, 1): mark(0x11);
            (1, 2): mark(0x12);
        }
    }
    table prefixes {
        key = {
            hdr.data.w1: lpm;
        }
        actions = {
            mark;
        }
        const entries = {
            0x0a000000 &&& 0xff000000: mark(0x21);
            0x0a0b0000 &&& 0xffff0000: mark(0x22);
            0x0a0b0c0d: mark(0x23);
            _: mark(0x24);
        }
    }
    table ternaries {
        key = {
            hdr.data.h1: ternary;
            hdr.data.h2: range;
        }
        actions = {
            mark;
        }
        const entries = {
            (0x8000 &&& 0x8000, 1 .. 9): mark(0x31);
            (0xffff, _): mark(0x32);
            (_, 5 .. 20): mark(0x33);
            (7, 100): mark(0x34);
        }
    }
    apply {
        std.egress_spec = 2;
        if (hdr.data.b3 == 1) {
            exacts.apply();
        } else if (hdr.data.b3 == 2) {
            prefixes.apply();
        } else {
            ternaries.apply();
        }
    }
}

#include "../include/after.p4"
