// Validity as a key beside a field of the header that may be invalid.
#include "../include/before.p4"

header byte_t {
    bit<8> value;
}

struct headers_t {
    byte_t first;
    byte_t second;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.first);
        transition select(hdr.first.value) {
            2: more;
            default: accept;
        }
    }
    state more {
        packet.extract(hdr.second);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action mark(bit<8> by) {
        hdr.first.value = by;
    }
    table marks {
        key = {
            hdr.second.isValid(): ternary;
            hdr.second.value: ternary;
        }
        actions = {
            mark;
        }
        const entries = {
            (true, 5): mark(0x51);
            (true, _): mark(0x52);
            (false, _): mark(0x53);
        }
    }
    apply {
        std.egress_spec = 2;
        marks.apply();
    }
}

#include "../include/after.p4"
