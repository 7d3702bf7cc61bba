// Fields of 1, 7, 33, 65 and 22 bits, each kept to its width.
#include "../include/before.p4"

header odd_t {
    bit<1> a;
    bit<7> b;
    bit<33> c;
    bit<65> d;
    bit<22> e;
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
        hdr.odd.a = hdr.odd.a + 1;
        hdr.odd.b = hdr.odd.b + 1;
        hdr.odd.c = hdr.odd.c + 1;
        hdr.odd.d = hdr.odd.d + 1;
        hdr.odd.e = hdr.odd.e + 1;
    }
}

#include "../include/after.p4"
