// Several checksums: an error of any of them shows, and only those whose condition holds count.
#include "../include/one_header.p4"

#define OWN_VERIFY
control verify_sums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.data.b1 == 1, { hdr.data.w1 }, hdr.data.h1, HashAlgorithm.csum16);
        verify_checksum(hdr.data.b2 == 1, { hdr.data.w2 }, hdr.data.h2, HashAlgorithm.csum16);
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.b3 = (bit<8>)std.checksum_error;
    }
}

#include "../include/after.p4"
