// uSID: a packet whose destination address is the list of switches it is to pass.

#include <core.p4>
#include <v1model.p4>

const bit<16> ETHERTYPE_IPV6 = 0x86DD;
const bit<8>  PROTOCOL_IPV6  = 41;      // what follows is IPv6 once more

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header ipv6_t {
    bit<4>   version;
    bit<8>   traffic_class;
    bit<20>  flow_label;
    bit<16>  payload_len;
    bit<8>   next_header;
    bit<8>   hop_limit;
    bit<128> src_addr;
    bit<128> dst_addr;
}

struct headers_t {
    ethernet_t ethernet;
    ipv6_t     outer;
    ipv6_t     inner;
}

struct metadata_t {}

parser usid_parser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV6: parse_outer;
            default: accept;
        }
    }

    state parse_outer {
        packet.extract(hdr.outer);
        transition select(hdr.outer.next_header) {
            PROTOCOL_IPV6: parse_inner;
            default: accept;
        }
    }

    state parse_inner {
        packet.extract(hdr.inner);
        transition accept;
    }
}

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    // The address is a block of 32 bits, and then uSIDs of 16 bits: this switch's first, which goes.
    action shift() {
        hdr.outer.dst_addr = hdr.outer.dst_addr[127:96] ++ hdr.outer.dst_addr[79:0] ++ 16w0;
    }

    // The packet inside goes on by itself.
    action decapsulate() {
        hdr.outer = hdr.inner;
        hdr.inner.setInvalid();
    }

    // Addresses that begin with the block and this switch's own uSID, 48 bits in all.
    table own {
        key = { hdr.outer.dst_addr : lpm; }
        actions = { NoAction; }
        default_action = NoAction();
        size = 16;
    }

    action forward(bit<9> port) {
        standard_metadata.egress_spec = port;
        hdr.outer.hop_limit = hdr.outer.hop_limit - 1;
    }

    table routes {
        key = { hdr.outer.dst_addr : lpm; }
        actions = { forward; drop; }
        default_action = drop();
        size = 1024;
    }

    apply {
        if (!hdr.outer.isValid() || hdr.outer.hop_limit <= 1) {
            drop();
            exit;
        }
        if (own.apply().hit) {
            if (hdr.outer.dst_addr[79:0] != 0) {
                shift();
            } else if (hdr.inner.isValid()) {
                decapsulate();
            } else {
                drop();
                exit;
            }
        }
        routes.apply();
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {}
}

control nothing(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control usid_deparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.outer);
        packet.emit(hdr.inner);
    }
}

V1Switch(usid_parser(), nothing(), ingress(), egress(), nothing(), usid_deparser()) main;
