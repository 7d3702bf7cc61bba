// In-band telemetry: packets that carry what every switch on their way says of them.
//
// Such a packet is UDP to port 20052. After UDP comes `report`, then what the switches said, the
// last one first, then the payload.

#include <core.p4>
#include <v1model.p4>

const bit<16> TELEMETRY = 20052;
const bit<16> WORDS     = 12;      // bytes that a switch adds

struct metadata_t {}

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> total_len;
    bit<16> identification;
    bit<16> fragment;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> hdr_checksum;
    bit<32> src_addr;
    bit<32> dst_addr;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

header report_t {
    bit<8> said;       // switches that said something so far
    bit<8> room;       // for how many there is room yet
}

header hop_t {
    bit<32> switch_id;
    bit<32> waited;      // nanoseconds, from coming in to leaving
    bit<32> queue;       // bytes that waited for this port
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
    report_t   report;
    hop_t      hop;      // this switch's own; what others said travels as payload
}

parser int_parser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            0x0800: parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) {
            17: parse_udp;
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) {
            TELEMETRY: parse_report;
            default: accept;
        }
    }

    state parse_report {
        packet.extract(hdr.report);
        transition accept;
    }
}

register<bit<32>>(512) queued;    // bytes that wait for each port

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    action forward(bit<9> port) {
        standard_metadata.egress_spec = port;
    }

    table routes {
        key = { hdr.ipv4.dst_addr : exact; }
        actions = { forward; }
        default_action = forward(511);
        size = 64;
    }

    apply {
        routes.apply();
        bit<32> before;
        queued.read(before, (bit<32>)standard_metadata.egress_spec);
        queued.write((bit<32>)standard_metadata.egress_spec,
                     before + standard_metadata.packet_length);
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    bit<32> waiting;

    action say(bit<32> switch_id) {
        hdr.hop.setValid();
        hdr.hop.switch_id = switch_id;
        hdr.hop.waited = (bit<32>)(standard_metadata.egress_global_timestamp -
                                   standard_metadata.ingress_global_timestamp);
        hdr.hop.queue = waiting;
        hdr.report.said = hdr.report.said + 1;
        hdr.report.room = hdr.report.room - 1;
        hdr.ipv4.total_len = hdr.ipv4.total_len + WORDS;
        hdr.udp.length = hdr.udp.length + WORDS;
        hdr.udp.checksum = 0;
    }

    // Whether this switch says anything, and what it is called.
    table me {
        actions = { say; NoAction; }
        default_action = NoAction();
    }

    apply {
        queued.read(waiting, (bit<32>)standard_metadata.egress_port);
        queued.write((bit<32>)standard_metadata.egress_port,
                     waiting - standard_metadata.packet_length);
        if (hdr.report.isValid() && hdr.report.room != 0) {
            me.apply();
        }
    }
}

control nothing(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control checksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_len,
              hdr.ipv4.identification, hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src_addr, hdr.ipv4.dst_addr },
            hdr.ipv4.hdr_checksum, HashAlgorithm.csum16);
    }
}

control int_deparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.report);
        packet.emit(hdr.hop);
    }
}

V1Switch(int_parser(), nothing(), ingress(), egress(), checksum(), int_deparser()) main;
