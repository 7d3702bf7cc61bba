// switch on the action a table ran; a label without a body shares the next one.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action one() {
        hdr.data.b1 = 1;
    }
    action two() {
        hdr.data.b1 = 2;
    }
    action three() {
        hdr.data.b1 = 3;
    }
    action four() {
        hdr.data.b1 = 4;
    }
    table marks {
        key = {
            hdr.data.h1: exact;
        }
        actions = {
            one;
            two;
            three;
            four;
        }
        default_action = four();
    }
    apply {
        std.egress_spec = 2;
        switch (marks.apply().action_run) {
            one: {
                hdr.data.b2 = 0x10;
            }
            two:
            three: {
                hdr.data.b2 = 0x23;
            }
            default: {
                hdr.data.b2 = 0xdd;
            }
        }
        hdr.data.b3 = hdr.data.b2 + 1;
    }
}

#include "../include/after.p4"
