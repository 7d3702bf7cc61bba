// Assigning a header to a member is as making it valid.
#include "../include/before.p4"

header short_t {
    bit<8> value;
}

header long_t {
    bit<16> value;
}

header_union number_t {
    short_t short;
    long_t long;
}

struct headers_t {
    long_t first;
    number_t number;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.first);
        packet.extract(hdr.number.short);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.first.value[0:0] == 1) {
            hdr.number.long = hdr.first;
        }
    }
}

#include "../include/after.p4"
