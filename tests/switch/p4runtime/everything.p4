// One of each thing P4Runtime can name: every match kind, profiles, counters, meters, registers,
// a value set, a digest, clones, multicast, packets to and from the controller.

#include <core.p4>
#include <v1model.p4>

const bit<9> CPU_PORT = 510;
const bit<16> ETH_IPV4 = 0x0800;
const bit<16> ETH_LEARN = 0x88b5;
const bit<16> ETH_CLONE = 0x88b6;
const bit<16> ETH_FLOOD = 0x88b7;
const bit<16> ETH_PUNT = 0x88b8;
const bit<16> ETH_CELLS = 0x88b9;

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> padding;
}

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> reason;
}

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<8> version_ihl;
    bit<8> tos;
    bit<16> len;
    bit<32> id_frag;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

struct headers_t {
    packet_out_t packet_out;
    packet_in_t packet_in;
    ethernet_t ethernet;
    ipv4_t ipv4;
}

struct metadata_t {
    bit<1> trusted;
    bit<2> colour;
    bit<2> direct_colour;
}

struct learn_t {
    bit<48> mac;
    bit<9> port;
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    value_set<bit<16>>(4) trusted_types;

    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }
    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }
    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            ETH_IPV4: parse_ipv4;
            trusted_types: parse_trusted;
            default: accept;
        }
    }
    state parse_trusted {
        meta.trusted = 1;
        transition accept;
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Forward(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    counter(16, CounterType.packets_and_bytes) port_counter;
    meter(8, MeterType.bytes) port_meter;
    register<bit<32>>(16) cells;
    register<bit<8>>(4) flags;
    direct_counter(CounterType.packets_and_bytes) route_counter;
    direct_meter<bit<2>>(MeterType.packets) acl_meter;
    action_profile(8) paths;
    action_selector(HashAlgorithm.crc16, 64, 16) ways;

    action drop() {
        mark_to_drop(standard_metadata);
    }
    action forward(bit<9> port) {
        standard_metadata.egress_spec = port;
    }
    action route(bit<9> port, bit<48> dst) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.dst = dst;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }
    action count_route(bit<9> port, bit<48> dst) {
        route_counter.count();
        standard_metadata.egress_spec = port;
        hdr.ethernet.dst = dst;
    }
    action count_drop() {
        route_counter.count();
        mark_to_drop(standard_metadata);
    }
    action police() {
        acl_meter.read(meta.direct_colour);
    }

    table mac {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; drop; NoAction; }
        size = 131072;
        support_timeout = true;
        default_action = NoAction();
    }
    table ipv4_lpm {
        key = { hdr.ipv4.dst: lpm; }
        actions = { count_route; count_drop; }
        size = 131072;
        counters = route_counter;
        default_action = count_drop();
    }
    table acl {
        key = {
            hdr.ipv4.src: ternary;
            hdr.ipv4.protocol: optional;
            hdr.ipv4.len: range;
        }
        actions = { police; drop; NoAction; }
        size = 1024;
        meters = acl_meter;
        default_action = NoAction();
    }
    table exact_and_lpm {
        key = {
            hdr.ipv4.tos: exact;
            hdr.ipv4.src: lpm;
        }
        actions = { drop; NoAction; }
        size = 4;
        const default_action = NoAction();
    }
    table fixed {
        key = { hdr.ethernet.type: exact; }
        actions = { forward; NoAction; }
        const entries = {
            0x9000: forward(9);
            0x9001: forward(10);
        }
        default_action = NoAction();
    }
    table via_profile {
        key = { hdr.ipv4.tos: exact; }
        actions = { route; drop; }
        implementation = paths;
        size = 16;
    }
    table via_selector {
        key = {
            hdr.ipv4.protocol: exact;
            hdr.ipv4.src: selector;
            hdr.ipv4.dst: selector;
        }
        actions = { route; drop; }
        implementation = ways;
        size = 16;
    }

    apply {
        bit<32> cell = 0;
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            port_counter.count((bit<32>)standard_metadata.ingress_port & 15);
            port_meter.execute_meter((bit<32>)standard_metadata.ingress_port & 7, meta.colour);
            mac.apply();
            fixed.apply();
            if (hdr.ipv4.isValid()) {
                ipv4_lpm.apply();
                acl.apply();
                exact_and_lpm.apply();
                via_profile.apply();
                via_selector.apply();
            } else if (hdr.ethernet.type == ETH_LEARN) {
                digest<learn_t>(1, {hdr.ethernet.src, standard_metadata.ingress_port});
            } else if (hdr.ethernet.type == ETH_CLONE) {
                clone(CloneType.I2E, 5);
            } else if (hdr.ethernet.type == ETH_FLOOD) {
                standard_metadata.mcast_grp = 1;
            } else if (hdr.ethernet.type == ETH_PUNT) {
                standard_metadata.egress_spec = CPU_PORT;
            } else if (hdr.ethernet.type == ETH_CELLS) {
                cells.read(cell, 3);
                hdr.ethernet.src = (bit<48>)cell;
                cells.write(4, hdr.ethernet.dst[31:0]);
                flags.write(1, hdr.ethernet.dst[7:0]);
                standard_metadata.egress_spec = standard_metadata.ingress_port;
            } else if (meta.trusted == 1) {
                standard_metadata.egress_spec = standard_metadata.ingress_port;
            }
        }
    }
}

control Leave(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.egress_port == CPU_PORT) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = standard_metadata.ingress_port;
            hdr.packet_in.reason = 3;
        }
    }
}

control Compute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(Parse(), Verify(), Forward(), Leave(), Compute(), Deparse()) main;
