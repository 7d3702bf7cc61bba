/* Objects that a program gives to roles: some to one, some to two, some to nobody but the default. */
#include <v1model.p4>

@controller_header("packet_in")
@p4runtime_role("policy")
header packet_in_t {
    bit<9> came_in;
    bit<7> pad;
}

@controller_header("packet_out")
@p4runtime_role("policy")
header packet_out_t {
    bit<9> leave_by;
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
    bit<2> colour;
}

@p4runtime_role("learning")
struct seen_t {
    bit<8> value;
    bit<9> port;
}

parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    @p4runtime_role("policy")
    value_set<bit<8>>(4) punted;

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
            punted: punt;
            default: accept;
        }
    }
    state punt {
        meta.colour = 3;
        transition accept;
    }
}

control V(inout headers_t hdr, inout meta_t meta) {
    apply {}
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    @p4runtime_role("routing")
    action_selector(HashAlgorithm.crc16, 64, 14) ways;
    action_profile(16) spares;
    @p4runtime_role("routing", "policy")
    counter(8, CounterType.packets) passed;
    @p4runtime_role("policy")
    meter(8, MeterType.packets) rate;
    @p4runtime_role("learning")
    register<bit<8>>(8) last;
    direct_counter(CounterType.packets) hits;

    action drop() {
        mark_to_drop(std);
    }
    action send(bit<9> port) {
        std.egress_spec = port;
    }
    @p4runtime_role("policy")
    action punt() {
        hdr.to_cpu.setValid();
        hdr.to_cpu.came_in = std.ingress_port;
        hdr.to_cpu.pad = 0;
        std.egress_spec = 510;
    }

    @p4runtime_role("routing")
    table routes {
        key = {
            hdr.tag.value: exact;
        }
        actions = {
            send;
            punt;
            drop;
        }
        default_action = drop;
        counters = hits;
        support_timeout = true;
    }
    @p4runtime_role("routing", "policy")
    table acl {
        key = {
            hdr.tag.value: exact;
        }
        actions = {
            send;
            punt;
            NoAction;
        }
        default_action = NoAction;
        support_timeout = true;
    }
    @p4runtime_role("routing")
    table groups {
        key = {
            hdr.tag.value: exact;
            std.ingress_port: selector;
        }
        actions = {
            send;
            NoAction;
        }
        default_action = NoAction;
        implementation = ways;
    }
    @p4runtime_role("policy")
    table detours {
        key = {
            hdr.tag.value: exact;
        }
        actions = {
            send;
            NoAction;
        }
        default_action = NoAction;
        implementation = spares;
    }
    table plain {
        key = {
            hdr.tag.value: exact;
        }
        actions = {
            send;
            NoAction;
        }
        default_action = NoAction;
    }
    apply {
        if (hdr.from_cpu.isValid()) {
            std.egress_spec = hdr.from_cpu.leave_by;
            hdr.from_cpu.setInvalid();
            exit;
        }
        passed.count((bit<32>)hdr.tag.value[2:0]);
        rate.execute_meter((bit<32>)hdr.tag.value[2:0], meta.colour);
        last.write((bit<32>)hdr.tag.value[2:0], hdr.tag.value);
        digest<seen_t>(1, { hdr.tag.value, std.ingress_port });
        routes.apply();
        groups.apply();
        detours.apply();
        plain.apply();
        acl.apply();
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
