// Elements of a stack by constant index, valid and not.
#include "../include/before.p4"

header byte_t {
    bit<8> value;
}

struct headers_t {
    byte_t[4] bytes;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.bytes[0]);
        packet.extract(hdr.bytes[2]);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.bytes[2].isValid() && !hdr.bytes[1].isValid()) {
            hdr.bytes[3].setValid();
            hdr.bytes[3].value = hdr.bytes[2].value + 1;
            hdr.bytes[0].setInvalid();
        }
    }
}

#include "../include/after.p4"
