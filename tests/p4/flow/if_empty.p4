// Branches in which nothing is done, or nothing that shows, lead on to what comes behind them.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    bit<8> same = 7;

    action nothing() {}

    apply {
        if (hdr.data.a > 0) {}
        if (hdr.data.a > 1) { if (hdr.data.b > 1) {} }
        std.egress_spec = 2;
        if (hdr.data.d > 3) {
            if (hdr.data.d > 8) { hdr.data.c = hdr.data.c | 1; }
            if (hdr.data.d > 9) { same = same; }
        }
        hdr.data.c = hdr.data.c | 2;
        if (hdr.data.e > 3) {
            if (hdr.data.e > 8) { hdr.data.c = hdr.data.c | 4; } else { nothing(); }
            if (hdr.data.e > 5) { nothing(); } else if (hdr.data.e > 4) {} else { nothing(); }
        } else {
            if (hdr.data.e > 2) { hdr.data.c = hdr.data.c | 8; }
            switch (hdr.data.e) { 1: { nothing(); } 2: {} default: { same = same; } }
        }
        hdr.data.c = hdr.data.c | 16;
        if (hdr.data.a > 2) { hdr.data.c = hdr.data.c | 32; }
        if (hdr.data.a > 3) {}
    }
}

#include "../include/main.p4"
