// Variables of a parser live through its states and loops, and start anew with each packet.
#include "../include/before.p4"

header byte_t {
    bit<8> value;
}

struct headers_t {
    byte_t count;
    byte_t[8] bytes;
}

struct metadata_t {
    bit<8> sum;
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    bit<8> left = 0;
    bit<8> sum = 100;

    state start {
        packet.extract(hdr.count);
        left = hdr.count.value;
        transition next;
    }
    state next {
        transition select(left) {
            0: done;
            default: one;
        }
    }
    state one {
        packet.extract(hdr.bytes.next);
        sum = sum + hdr.bytes.last.value;
        left = left - 1;
        transition next;
    }
    state done {
        meta.sum = sum;
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.count.value = meta.sum;
    }
}

#include "../include/after.p4"
