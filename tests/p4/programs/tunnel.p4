// A tunnel: an outer header in front, with a length and checksum of its own; and back.
#include "../include/before.p4"

header outer_t {
    bit<8> kind;
    bit<24> id;
    bit<16> length;
    bit<16> checksum;
}

struct headers_t {
    ethernet_t outer_ethernet;
    outer_t outer;
    ethernet_t ethernet;
}

struct metadata_t {
    bit<24> id;
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        transition select(packet.lookahead<ethernet_t>().type) {
            0x9999: tunnelled;
            default: plain;
        }
    }
    state tunnelled {
        packet.extract(hdr.outer_ethernet);
        packet.extract(hdr.outer);
        transition plain;
    }
    state plain {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

#define OWN_VERIFY
control verify_sums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.outer.isValid(), { hdr.outer.kind, hdr.outer.id, hdr.outer.length },
                        hdr.outer.checksum, HashAlgorithm.csum16);
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action encapsulate(bit<24> id, mac_t to, bit<9> port) {
        hdr.outer_ethernet.setValid();
        hdr.outer_ethernet = { to, 0x02, 0x9999 };
        hdr.outer.setValid();
        hdr.outer.kind = 1;
        hdr.outer.id = id;
        hdr.outer.length = (bit<16>)std.packet_length;
        std.egress_spec = port;
    }
    action decapsulate(bit<9> port) {
        hdr.outer.setInvalid();
        hdr.outer_ethernet.setInvalid();
        std.egress_spec = port;
    }
    action drop() {
        mark_to_drop(std);
    }
    table into {
        key = {
            hdr.ethernet.dst: ternary;
        }
        actions = {
            encapsulate;
            drop;
        }
        default_action = drop();
    }
    table outof {
        key = {
            hdr.outer.id: exact;
            std.checksum_error: exact;
        }
        actions = {
            decapsulate;
            drop;
        }
        default_action = drop();
    }
    apply {
        if (hdr.outer.isValid()) {
            outof.apply();
        } else {
            into.apply();
        }
    }
}

#define OWN_UPDATE
control update_sums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.outer.isValid(), { hdr.outer.kind, hdr.outer.id, hdr.outer.length },
                        hdr.outer.checksum, HashAlgorithm.csum16);
    }
}

#include "../include/after.p4"
