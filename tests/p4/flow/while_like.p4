// A loop whose only end is a condition on the packet: how many ones are in a word.
#include "../include/one_header.p4"

bit<8> ones(in bit<32> word) {
    bit<8> count = 0;
    for (bit<32> rest = word; rest != 0; rest = rest & (rest - 1)) {
        count = count + 1;
    }
    return count;
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.b1 = ones(hdr.data.w1);
        hdr.data.b2 = ones(hdr.data.w2);
    }
}

#include "../include/after.p4"
