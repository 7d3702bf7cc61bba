// Headers of packets to and from the controller are headers as any other on a port.
#include "../include/before.p4"

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> _pad;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> _pad;
}

struct headers_t {
    packet_out_t packet_out;
    packet_in_t packet_in;
    data_t data;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        transition select(std.ingress_port) {
            64: from_controller;
            default: data;
        }
    }
    state from_controller {
        packet.extract(hdr.packet_out);
        transition data;
    }
    state data {
        packet.extract(hdr.data);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (hdr.packet_out.isValid()) {
            std.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = std.ingress_port;
            hdr.packet_in._pad = 0;
            std.egress_spec = 64;
        }
    }
}

#include "../include/after.p4"
