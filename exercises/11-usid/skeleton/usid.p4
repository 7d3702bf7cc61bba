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
        // TODO 1: the block stays, the rest moves up by 16 bits
    }

    // The packet inside goes on by itself.
    action decapsulate() {
        // TODO 2: the inner header takes the outer one's place
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
        // TODO 3: one hop less
    }

    table routes {
        key = { hdr.outer.dst_addr : lpm; }
        actions = { forward; drop; }
        default_action = drop();
        size = 1024;
    }

    apply {
        // TODO 4: what is not IPv6, or has no hop left, ends here: drop(); exit;
        // TODO 1: if this switch is named first, and something follows, shift();
        // TODO 2: if nothing follows, decapsulate(), or drop what has nothing inside
        // TODO 3: then look up the routes
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
