// hit and miss in conditions, in values and in expressions.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action mark() {
        hdr.data.b1 = 0x11;
    }
    table first {
        key = {
            hdr.data.h1: exact;
        }
        actions = {
            mark;
            NoAction;
        }
        default_action = mark();
    }
    table second {
        key = {
            hdr.data.h2: exact;
        }
        actions = {
            NoAction;
        }
        default_action = NoAction();
    }
    table third {
        key = {
            hdr.data.b4: exact;
        }
        actions = {
            NoAction;
        }
        default_action = NoAction();
    }
    apply {
        std.egress_spec = 2;
        if (first.apply().hit) {
            hdr.data.b2 = 1;
        } else {
            hdr.data.b2 = 2;
        }
        bool missed = second.apply().miss;
        if (missed) {
            hdr.data.b3 = 3;
        }
        if (!third.apply().hit && missed) {
            hdr.data.b4 = 0xee;
        }
    }
}

#include "../include/after.p4"
