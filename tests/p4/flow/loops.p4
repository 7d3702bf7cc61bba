// for in its three forms, with break and continue, nested.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bit<32> sum = 0;
        for (bit<8> i = 0; i < hdr.data.b1; i = i + 1) {
            if (i == 3) {
                continue;
            }
            if (i == 6) {
                break;
            }
            sum = sum + (bit<32>)i;
        }
        hdr.data.w1 = sum;
        bit<16> count = 0;
        for (bit<8> i in 1 .. 4) {
            for (bit<8> j in i .. 4) {
                if (j == hdr.data.b2) {
                    break;
                }
                count = count + 1;
            }
        }
        hdr.data.h1 = count;
        for (bit<8> i = 1, bit<8> j = 10; i < j; i = i + 2, j = j - 1) {
            hdr.data.h2 = i ++ j;
        }
    }
}

#include "../include/after.p4"
