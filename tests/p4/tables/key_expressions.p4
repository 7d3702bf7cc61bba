// Keys that are expressions: sums, slices, masks, a validity, a constant.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action mark(bit<8> by) {
        hdr.data.b4 = by;
    }
    table marks {
        key = {
            hdr.data.b1 + hdr.data.b2: exact @name("sum");
            hdr.data.w1[15:8]: exact @name("slice");
            hdr.data.isValid(): exact @name("valid");
            hdr.data.h1 & 0x0f0f: exact @name("masked");
        }
        actions = {
            mark;
        }
    }
    apply {
        std.egress_spec = 2;
        marks.apply();
    }
}

#include "../include/after.p4"
