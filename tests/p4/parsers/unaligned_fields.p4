// Fields that begin and end within bytes.
#include "../include/before.p4"

header odd_t {
    bit<3> a;
    bit<13> b;
    bit<1> c;
    bit<20> d;
    bit<3> e;
}

struct headers_t {
    odd_t odd;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.odd);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bit<3> a = hdr.odd.a;
        hdr.odd.a = hdr.odd.e;
        hdr.odd.e = a;
        hdr.odd.b = hdr.odd.b + 1;
        hdr.odd.d = hdr.odd.d - 1;
    }
}

#include "../include/after.p4"
