// An IPv4 router: routes, next hops, TTL and checksum; what it cannot route goes to the controller.
#include "../include/before.p4"

const bit<9> CONTROLLER = 64;

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> length;
    bit<16> id;
    bit<3> flags;
    bit<13> offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
}

struct metadata_t {
    bit<32> next_hop;
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4, error.ParserInvalidArgument);
        transition accept;
    }
}

#define OWN_VERIFY
control verify_sums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(),
                        { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.length,
                          hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.offset, hdr.ipv4.ttl,
                          hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
                        hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    counter(512, CounterType.packets_and_bytes) sent;

    action drop() {
        mark_to_drop(std);
    }
    action to_controller() {
        std.egress_spec = CONTROLLER;
    }
    action to_hop(bit<32> address, bit<9> port) {
        meta.next_hop = address;
        std.egress_spec = port;
    }
    action to_link(bit<9> port) {
        meta.next_hop = hdr.ipv4.dst;
        std.egress_spec = port;
    }
    action set_dst(mac_t mac) {
        hdr.ethernet.src = 0x020000000000 | (bit<48>)std.egress_spec;
        hdr.ethernet.dst = mac;
    }
    table routes {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            to_hop;
            to_link;
            drop;
            to_controller;
        }
        default_action = to_controller();
    }
    table neighbours {
        key = {
            meta.next_hop: exact;
        }
        actions = {
            set_dst;
            to_controller;
        }
        default_action = to_controller();
    }
    apply {
        if (std.parser_error != error.NoError || std.checksum_error == 1) {
            drop();
            return;
        }
        if (!hdr.ipv4.isValid() || hdr.ipv4.ttl < 2) {
            to_controller();
            exit;
        }
        switch (routes.apply().action_run) {
            to_hop:
            to_link: {
                if (neighbours.apply().hit) {
                    hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
                    sent.count((bit<32>)std.egress_spec);
                }
            }
        }
    }
}

#define OWN_UPDATE
control update_sums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
                        { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.length,
                          hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.offset, hdr.ipv4.ttl,
                          hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
                        hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

#include "../include/after.p4"
