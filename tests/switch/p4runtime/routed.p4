/* A router whose objects clients name by strings, as SONiC's P4 programs have it: routes lead to next
 * hops or to weighted groups of them, a next hop to a router interface and a neighbour, which give
 * port and addresses. What comes in front of packets to the controller is declared and left to the
 * hardware, no header of the program's own. */
#include <v1model.p4>

@p4runtime_translation("", string)
type bit<9> port_t;
@p4runtime_translation("", string)
type bit<10> vrf_t;
@p4runtime_translation("", string)
type bit<10> interface_t;
@p4runtime_translation("", string)
type bit<10> next_hop_t;
@p4runtime_translation("", string)
type bit<12> group_t;

#define CPU_\
PORT 510
#define VERSION \
    "1.\
2"

@controller_header("packet_in")
header packet_in_t {
    port_t came_in;
    port_t meant_for;
}

@controller_header("packet_out")
header packet_out_t {
    port_t leave_by;
    bit<7> pad;
}

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header address_t {
    bit<8> hops;
    bit<128> dst;
}

struct headers_t {
    packet_out_t from_cpu;
    ethernet_t ethernet;
    address_t ip;
}

struct meta_t {
    vrf_t vrf;
    group_t group;
    next_hop_t next_hop;
    interface_t interface;
    bit<128> neighbour;
    bool is_grouped;
    bool is_routed;
}

parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        transition select(std.ingress_port) {
            CPU_PORT: from_cpu;
            default: frame;
        }
    }
    state from_cpu {
        pkt.extract(hdr.from_cpu);
        transition frame;
    }
    state frame {
        pkt.extract(hdr.ethernet);
        pkt.extract(hdr.ip);
        transition accept;
    }
}

control V(inout headers_t hdr, inout meta_t meta) {
    apply {}
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action set_vrf(vrf_t vrf) {
        meta.vrf = vrf;
    }
    action set_next_hop(@refers_to(next_hops,
                                   next_hop) next_hop_t next_hop) {
        meta.next_hop = next_hop;
        meta.is_routed = true;
    }
    action set_group(group_t group) {
        meta.group = group;
        meta.is_grouped = true;
    }
    action set_flood(bit<16> group) {
        std.mcast_grp = group;
    }
    action to_controller() {
        std.egress_spec = CPU_PORT;
    }
    action set_neighbour(interface_t interface, bit<128> neighbour) {
        meta.interface = interface;
        meta.neighbour = neighbour;
    }
    action leave(port_t port, bit<48> src) {
        std.egress_spec = (bit<9>)port;
        hdr.ethernet.src = src;
        hdr.ip.hops = hdr.ip.hops - 1;
    }
    action set_dst(bit<48> dst) {
        hdr.ethernet.dst = dst;
    }

    action_selector(HashAlgorithm.crc16, 64, 16) members;

    table vrfs {
        key = {
            (port_t)std.ingress_port: optional @name("port");
        }
        actions = {
            set_vrf;
        }
    }
    table routes {
        key = {
            meta.vrf: exact;
            hdr.ip.dst: lpm;
        }
        actions = {
            set_next_hop;
            set_group;
            set_flood;
            to_controller;
        }
        const default_action = to_controller();
    }
    @oneshot
    table groups {
        key = {
            meta.group: exact;
            hdr.ip.dst: selector;
        }
        actions = {
            set_next_hop;
        }
        implementation = members;
    }
    table next_hops {
        key = {
            meta.next_hop: exact;
        }
        actions = {
            set_neighbour;
        }
    }
    table interfaces {
        key = {
            meta.interface: exact;
        }
        actions = {
            leave;
        }
    }
    table neighbours {
        key = {
            meta.interface: exact;
            meta.neighbour: exact;
        }
        actions = {
            set_dst;
        }
    }
    apply {
        if (hdr.from_cpu.isValid()) {
            std.egress_spec = (bit<9>)hdr.from_cpu.leave_by;
            hdr.from_cpu.setInvalid();
        } else {
            vrfs.apply();
            routes.apply();
            if (meta.is_grouped) {
                groups.apply();
            }
            if (meta.is_routed) {
                next_hops.apply();
                interfaces.apply();
                neighbours.apply();
            }
        }
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {}
}

control D(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.ethernet);
        pkt.emit(hdr.ip);
    }
}

@pkginfo(name = "routed", version = VERSION)
V1Switch(P(), V(), I(), E(), V(), D()) main;
