/* Types that clients see otherwise than the program: ports as strings and as 32 bits, and a VRF,
 * in keys, actions, defaults, packets, registers, digests and a value set. */
#include <v1model.p4>

@p4runtime_translation("", string)
type bit<9> port_t;
@p4runtime_translation("closlab/wide", bit<32>)
type bit<9> wide_t;
@p4runtime_translation("", string)
type bit<10> vrf_t;

const vrf_t DEFAULT_VRF = 0;

@controller_header("packet_in")
header packet_in_t {
    port_t came_in;
    wide_t also;
    bit<6> pad;
}

@controller_header("packet_out")
header packet_out_t {
    port_t leave_by;
    bit<7> pad;
}

header tag_t {
    bit<8> value;
}

struct headers_t {
    packet_in_t to_cpu;
    packet_out_t from_cpu;
    tag_t tag;
}

struct meta_t {
    vrf_t vrf;
    port_t port;
    bit<8> mark;
}

struct seen_t {
    port_t port;
    wide_t also;
    vrf_t vrf;
    bit<8> tag;
}

parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    value_set<bit<8>>(4) special;

    state start {
        transition select(std.ingress_port) {
            510: from_cpu;
            default: tag;
        }
    }
    state from_cpu {
        pkt.extract(hdr.from_cpu);
        transition tag;
    }
    state tag {
        pkt.extract(hdr.tag);
        transition select(hdr.tag.value) {
            special: marked;
            default: accept;
        }
    }
    state marked {
        meta.mark = 1;
        transition accept;
    }
}

control V(inout headers_t hdr, inout meta_t meta) {
    apply {}
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    register<port_t>(4) came_by;
    register<wide_t>(4) came_by_wide;
    register<bit<8>>(256) marks;

    action set_vrf(vrf_t vrf) {
        meta.vrf = vrf;
    }
    action send(port_t port) {
        std.egress_spec = (bit<9>)port;
    }
    action punt() {
        hdr.to_cpu.setValid();
        hdr.to_cpu.came_in = meta.port;
        hdr.to_cpu.also = (wide_t)(bit<9>)meta.port;
        hdr.to_cpu.pad = 0;
        std.egress_spec = 510;
    }
    table vrfs {
        key = {
            meta.port: exact;
        }
        actions = {
            set_vrf;
        }
        default_action = set_vrf(DEFAULT_VRF);
    }
    table routes {
        key = {
            meta.vrf: exact;
            hdr.tag.value: optional;
        }
        actions = {
            send;
            punt;
        }
        const default_action = punt();
    }
    apply {
        meta.port = (port_t)std.ingress_port;
        if (hdr.from_cpu.isValid()) {
            std.egress_spec = (bit<9>)hdr.from_cpu.leave_by;
            hdr.from_cpu.setInvalid();
        } else {
            vrfs.apply();
            came_by.write(1, meta.port);
            marks.write((bit<32>)hdr.tag.value, meta.mark);
            came_by_wide.write(1, (wide_t)std.ingress_port);
            digest<seen_t>(1, { meta.port, (wide_t)std.ingress_port, meta.vrf, hdr.tag.value });
            routes.apply();
        }
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {}
}

control D(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.to_cpu);
        pkt.emit(hdr.tag);
    }
}

V1Switch(P(), V(), I(), E(), V(), D()) main;
