// A table without a key runs its default action, be it const or not.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action mark(bit<8> by) {
        hdr.data.b1 = by;
    }
    action note(bit<8> by) {
        hdr.data.b3 = by;
    }
    table fixed {
        actions = {
            note;
        }
        const default_action = note(9);
    }
    table always {
        actions = {
            mark;
        }
        default_action = mark(5);
    }
    table empty_key {
        key = {
        }
        actions = {
            mark;
            NoAction;
        }
        default_action = NoAction();
    }
    apply {
        std.egress_spec = 2;
        always.apply();
        if (empty_key.apply().hit) {
            hdr.data.b2 = 1;
        } else {
            hdr.data.b2 = 2;
        }
        if (fixed.apply().hit) {
            hdr.data.b4 = 1;
        } else {
            hdr.data.b4 = 4;
        }
    }
}

#include "../include/after.p4"
