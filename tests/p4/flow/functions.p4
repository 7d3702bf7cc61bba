// Functions: several results, functions of functions, overloads by number, named arguments.
#include "../include/one_header.p4"

void divided(in bit<16> x, out bit<8> high, out bit<8> low) {
    high = x[15:8];
    low = x[7:0];
}

bit<16> joined(in bit<8> high, in bit<8> low) {
    return high ++ low;
}

bit<16> joined(in bit<16> x) {
    bit<8> high;
    bit<8> low;
    divided(x, high, low);
    return joined(low = high, high = low);
}

bit<32> squared(in bit<32> x) {
    return x * x;
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.h2 = joined(hdr.data.h1);
        divided(hdr.data.h1, hdr.data.b1, hdr.data.b2);
        hdr.data.w2 = squared(squared(hdr.data.w1) + 1);
    }
}

#include "../include/after.p4"
