// push_front moves all elements up; the new ones in front are invalid, those beyond the end lost.
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
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.count.value == 1) {
            hdr.bytes.push_front(1);
            hdr.bytes[0].setValid();
            hdr.bytes[0].value = 0x77;
        } else if (hdr.count.value == 2) {
            hdr.bytes.push_front(2);
        } else if (hdr.count.value == 3) {
            hdr.bytes.push_front(3);
        }
    }
}

#include "../include/after.p4"
