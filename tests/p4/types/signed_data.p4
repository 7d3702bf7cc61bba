// Actions' arguments below zero: those a program gives with a table, and the control plane's.

#include <core.p4>
#include <v1model.p4>

header number_t {
    bit<8>  key;
    int<8>  small;
    int<33> large;
    bit<7>  pad;
}

struct headers_t {
    number_t number;
}

struct metadata_t {}

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.number);
        transition accept;
    }
}

control nothing(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    action set(int<8> small, int<33> large) {
        hdr.number.small = small >> 1;
        hdr.number.large = large;
    }

    table given {
        key = { hdr.number.key : exact; }
        actions = { set; }
        default_action = set(-8, -1);
        const entries = {
            1 : set(-127, 33s5);
            2 : set(7, -4);
        }
    }

    table told {
        key = { hdr.number.key : exact; }
        actions = { set; NoAction; }
        default_action = NoAction();
    }

    apply {
        given.apply();
        told.apply();
        standard_metadata.egress_spec = 1;
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {}
}

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.number);
    }
}

V1Switch(parse(), nothing(), ingress(), egress(), nothing(), deparse()) main;
