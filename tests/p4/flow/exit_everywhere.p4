// exit ends the pipeline from anywhere in it, and never the other one.
#include "../include/one_header.p4"

control inner(inout headers_t hdr, in bit<8> mark, out bit<8> result) {
    action leave() {
        hdr.data.b3 = mark;
        exit;
    }
    table leaving {
        key = {
            hdr.data.b1: exact;
        }
        actions = {
            leave;
            NoAction;
        }
        const entries = {
            4: leave();
        }
        default_action = NoAction();
    }
    apply {
        result = 0x44;
        if (hdr.data.b1 == 3) {
            exit;
        }
        leaving.apply();
        result = 0x55;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    inner() nested;

    action leave() {
        hdr.data.b2 = 0x22;
        exit;
        hdr.data.b2 = 0x23;
    }
    apply {
        std.egress_spec = 2;
        if (hdr.data.b1 == 1) {
            exit;
        } else if (hdr.data.b1 == 2) {
            leave();
        }
        nested.apply(hdr, 0x99, hdr.data.b4);
        hdr.data.h1 = 0xaaaa;
    }
}

#define OWN_EGRESS
control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        hdr.data.h2 = 0xeeee;
        if (hdr.data.b1 == 6) {
            exit;
        }
        hdr.data.w1 = 1;
    }
}

#include "../include/after.p4"
