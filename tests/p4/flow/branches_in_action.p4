// Branches and loops within actions, those of tables as well.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action classify(bit<8> offset) {
        bit<8> sum = offset;
        if (hdr.data.b1 > 10) {
            if (hdr.data.b1 > 20) {
                sum = sum + 2;
            } else {
                sum = sum + 1;
            }
            hdr.data.b2 = sum;
            return;
        }
        hdr.data.b2 = 0xff;
        hdr.data.b3 = hdr.data.b1 == 0 ? 8w1 : 8w2;
    }
    table classes {
        key = {
            hdr.data.h1: exact;
        }
        actions = {
            classify;
        }
        default_action = classify(0x10);
    }
    apply {
        std.egress_spec = 2;
        classes.apply();
        hdr.data.b4 = 4;
    }
}

#include "../include/after.p4"
