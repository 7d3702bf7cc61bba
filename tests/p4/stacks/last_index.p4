// lastIndex is the index of the element the parser filled last.
#include "../include/before.p4"

header byte_t {
    bit<8> value;
}

struct headers_t {
    byte_t[4] bytes;
}

struct metadata_t {
    bit<32> last;
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.bytes.next);
        transition select(hdr.bytes.last.value) {
            0xff: done;
            default: start;
        }
    }
    state done {
        meta.last = hdr.bytes.lastIndex;
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.bytes[0].value = (bit<8>)meta.last;
    }
}

#include "../include/after.p4"
