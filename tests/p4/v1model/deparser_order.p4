// The deparser sends valid headers in the order it names them.
#include "../include/before.p4"

header byte_t {
    bit<8> value;
}

struct headers_t {
    byte_t a;
    byte_t b;
    byte_t[2] c;
    byte_t d;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.a);
        packet.extract(hdr.b);
        packet.extract(hdr.c.next);
        packet.extract(hdr.c.next);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.a.value == 1) {
            hdr.b.setInvalid();
        } else if (hdr.a.value == 2) {
            hdr.c[0].setInvalid();
            hdr.d.setValid();
            hdr.d.value = 0xdd;
        } else if (hdr.a.value == 3) {
            hdr.a.setInvalid();
            hdr.b.setInvalid();
            hdr.c[0].setInvalid();
            hdr.c[1].setInvalid();
        }
    }
}

#define OWN_DEPARSER
control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.c);
        packet.emit(hdr.d);
        packet.emit(hdr.b);
        packet.emit(hdr.a);
    }
}

#include "../include/after.p4"
