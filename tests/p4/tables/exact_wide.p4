// Exact keys of 128 bits, and of several fields together.
#include "../include/before.p4"

header v6_t {
    bit<128> src;
    bit<128> dst;
    bit<8> kind;
}

struct headers_t {
    v6_t v6;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.v6);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action forward(bit<9> port) {
        std.egress_spec = port;
    }
    action set_source(bit<128> address) {
        std.egress_spec = 3;
        hdr.v6.src = address;
    }
    action drop() {
        mark_to_drop(std);
    }
    table hosts {
        key = {
            hdr.v6.dst: exact;
            hdr.v6.kind: exact;
        }
        actions = {
            forward;
            set_source;
            drop;
        }
        default_action = drop();
    }
    apply {
        hosts.apply();
    }
}

#include "../include/after.p4"
