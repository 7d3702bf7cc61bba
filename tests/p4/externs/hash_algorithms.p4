// Every hash over the same nine bytes, "123456789", whose check values are published.
#include "../include/before.p4"

header digits_t {
    bit<72> digits;
}

header sums_t {
    bit<32> crc32;
    bit<16> crc16;
    bit<16> csum16;
    bit<16> xor16;
    bit<32> identity;
}

struct headers_t {
    digits_t text;
    sums_t sums;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.text);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.sums.setValid();
        hash(hdr.sums.crc32, HashAlgorithm.crc32, 32w0, { hdr.text.digits }, 33w0x100000000);
        hash(hdr.sums.crc16, HashAlgorithm.crc16, 16w0, { hdr.text.digits }, 32w0x10000);
        hash(hdr.sums.csum16, HashAlgorithm.csum16, 16w0, { hdr.text.digits }, 32w0x10000);
        hash(hdr.sums.xor16, HashAlgorithm.xor16, 16w0, { hdr.text.digits }, 32w0x10000);
        hash(hdr.sums.identity, HashAlgorithm.identity, 32w0, { hdr.text.digits[31:0] },
             33w0x100000000);
    }
}

#include "../include/after.p4"
