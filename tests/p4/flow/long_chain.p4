// Many branches one after another, some within others.
#include "../include/one_header.p4"

#define STEP(bit_, value) \
    if (hdr.data.h1[bit_:bit_] == 1) { \
        if (hdr.data.b1 == value) { \
            hdr.data.b2 = hdr.data.b2 + 1; \
        } else { \
            hdr.data.b1 = hdr.data.b1 + value; \
        } \
    }

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        STEP(0, 1)
        STEP(1, 2)
        STEP(2, 3)
        STEP(3, 4)
        STEP(4, 5)
        STEP(5, 6)
        STEP(6, 7)
        STEP(7, 8)
        STEP(8, 9)
        STEP(9, 10)
        STEP(10, 11)
        STEP(11, 12)
        STEP(12, 13)
        STEP(13, 14)
        STEP(14, 15)
        STEP(15, 16)
    }
}

#include "../include/after.p4"
