// A checksum over a header and the payload behind it.
#include "../include/before.p4"

header sum_t {
    bit<16> checksum;
    bit<16> value;
}

struct headers_t {
    sum_t sum;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.sum);
        transition accept;
    }
}

#define OWN_VERIFY
control verify_sums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum_with_payload(true, { hdr.sum.value }, hdr.sum.checksum,
                                     HashAlgorithm.csum16);
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (std.checksum_error == 1) {
            std.egress_spec = 3;
        }
        hdr.sum.value = 0x1000;
    }
}

#define OWN_UPDATE
control update_sums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum_with_payload(hdr.sum.isValid(), { hdr.sum.value }, hdr.sum.checksum,
                                     HashAlgorithm.csum16);
    }
}

#include "../include/after.p4"
