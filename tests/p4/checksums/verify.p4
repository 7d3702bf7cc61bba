// A wrong checksum sets checksum_error.
#define OWN_CHECKSUMS
#include <v1model.p4>

header ip_t {
    bit<8>  a;
    bit<8>  b;
    bit<16> c;
    bit<16> checksum;
}

struct headers {
    ip_t ip;
}

struct metadata {}

parser P(packet_in pkt, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.ip);
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (std.checksum_error == 1) {
            hdr.ip.b = 0xEE;
        }
    }
}

control MyVerify(inout headers hdr, inout metadata meta) {
    apply {
        verify_checksum(true, { hdr.ip.a, hdr.ip.b, hdr.ip.c }, hdr.ip.checksum, HashAlgorithm.csum16);
    }
}

control MyUpdate(inout headers hdr, inout metadata meta) {
    apply {

    }
}

#include "../include/main.p4"
