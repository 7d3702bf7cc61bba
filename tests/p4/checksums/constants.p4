// Constants among the fields of a checksum.
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

    }
}

control MyVerify(inout headers hdr, inout metadata meta) {
    apply {

    }
}

control MyUpdate(inout headers hdr, inout metadata meta) {
    apply {
        update_checksum(true, { hdr.ip.a, 16w0x1234, 8w0 }, hdr.ip.checksum, HashAlgorithm.csum16);
    }
}

#include "../include/main.p4"
