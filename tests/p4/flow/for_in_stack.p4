// for over a list and over the headers of a stack.
#include "../include/before.p4"

header byte_t {
    bit<8> value;
}

struct headers_t {
    byte_t sum;
    byte_t[3] bytes;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.sum);
        packet.extract(hdr.bytes.next);
        packet.extract(hdr.bytes.next);
        packet.extract(hdr.bytes.next);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bit<8> sum = 0;
        for (byte_t byte in hdr.bytes) {
            sum = sum + byte.value;
        }
        for (bit<8> x in (list<bit<8>>){ 0x10, 0x20, 0x40 }) {
            sum = sum + x;
        }
        hdr.sum.value = sum;
    }
}

#include "../include/after.p4"
