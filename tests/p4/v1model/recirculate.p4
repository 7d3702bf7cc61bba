// A recirculated packet starts over as egress deparsed it.
#include "../include/before.p4"

header byte_t {
    bit<8> value;
}

struct headers_t {
    byte_t turns;
    byte_t[4] stack;
}

struct metadata_t {
    @field_list(7)
    bit<8> kept;
    bit<8> lost;
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.turns);
        packet.extract(hdr.stack.next);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (std.instance_type == 4) {
            hdr.stack[0].value = hdr.stack[0].value + meta.kept + meta.lost;
        }
        meta.kept = 1;
        meta.lost = 0x80;
    }
}

#define OWN_EGRESS
control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (hdr.turns.value > 0) {
            hdr.turns.value = hdr.turns.value - 1;
            hdr.stack.push_front(1);
            hdr.stack[0].setValid();
            hdr.stack[0].value = 0xa0;
            recirculate_preserving_field_list(7);
        }
    }
}

#include "../include/after.p4"
