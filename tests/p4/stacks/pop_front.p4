// pop_front moves all elements down; those freed at the end are invalid.
#include "../include/before.p4"

header byte_t {
    bit<8> value;
}

struct headers_t {
    byte_t count;
    byte_t[3] bytes;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.count);
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
        if (hdr.count.value == 1) {
            hdr.bytes.pop_front(1);
        } else if (hdr.count.value == 2) {
            hdr.bytes.pop_front(2);
        } else if (hdr.count.value == 3) {
            hdr.bytes.pop_front(3);
        }
        if (!hdr.bytes[1].isValid()) {
            hdr.count.value = hdr.count.value | 0xf0;
        }
    }
}

#include "../include/after.p4"
