// A stateful firewall: what goes out opens a Bloom filter for what comes back.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<1>>(4096) first;
    register<bit<1>>(4096) second;
    bit<32> at_first;
    bit<32> at_second;

    action find(in bit<32> a, in bit<32> b) {
        hash(at_first, HashAlgorithm.crc16, 32w0, { a, b }, 32w4096);
        hash(at_second, HashAlgorithm.crc32, 32w0, { a, b }, 32w4096);
    }
    apply {
        if (std.ingress_port == 1) {
            find(hdr.data.w1, hdr.data.w2);
            first.write(at_first, 1);
            second.write(at_second, 1);
            std.egress_spec = 2;
        } else {
            find(hdr.data.w2, hdr.data.w1);
            bit<1> one;
            bit<1> two;
            first.read(one, at_first);
            second.read(two, at_second);
            if ((one & two) == 1) {
                std.egress_spec = 1;
            } else {
                mark_to_drop(std);
            }
        }
    }
}

#include "../include/after.p4"
