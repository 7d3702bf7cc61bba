/* What may pass, what the controller hears of, and what is copied. */
#include "edge_headers.p4"

control Acl(in headers_t hdr, inout meta_t meta) {
    direct_meter<bit<2>>(MeterType.bytes) trap_rate;
    direct_counter(CounterType.packets) hits;

    action forward() {
        trap_rate.read(meta.meter_colour);
    }
    action drop() {
        meta.verdict = verdict_t.drop;
    }
    @id(0x01000201)
    action trap(@id(1) queue_id_t queue) {
        trap_rate.read(meta.meter_colour);
        meta.queue = queue;
        meta.verdict = verdict_t.trap;
    }
    @id(0x01000202)
    action copy(@id(1) queue_id_t queue) {
        trap_rate.read(meta.meter_colour);
        meta.queue = queue;
        meta.verdict = verdict_t.copy;
    }
    action mirror(@id(1) mirror_id_t session) {
        meta.mirror = session;
    }
    @p4runtime_role("policy")
    @id(0x02000201)
    @entry_restriction("
        // Ports and protocols only of what has them.
        l4_dport::mask != 0 -> (protocol == 6 || protocol == 17);
        is_ip == 1 || (src::mask == 0 && dst::mask == 0);
        dscp::mask != 0 -> is_ip == 1;
    ")
    table acl {
        key = {
            meta.is_ip: optional @id(1) @name("is_ip");
            hdr.ethernet.type_: ternary @id(2) @name("ether_type");
            hdr.ipv4.src: ternary @id(3) @name("src") @format(IPV4_ADDRESS);
            hdr.ipv4.dst: ternary @id(4) @name("dst") @format(IPV4_ADDRESS);
            hdr.ipv4.protocol: ternary @id(5) @name("protocol");
            meta.dscp: ternary @id(6) @name("dscp");
            meta.dport: range @id(7) @name("l4_dport");
            meta.ingress_port: optional @id(8) @name("in_port");
        }
        actions = {
            @proto_id(1) forward;
            @proto_id(2) drop;
            @proto_id(3) trap;
            @proto_id(4) copy;
            @proto_id(5) @tableonly mirror;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        counters = hits;
        meters = trap_rate;
        size = 256;
    }
    apply {
        acl.apply();
        meta.colour = colour_t.green;
        if (meta.meter_colour == 2) {
            meta.colour = colour_t.red;
        } else if (meta.meter_colour == 1) {
            meta.colour = colour_t.yellow;
        }
    }
}

control Enforce(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    counter(4, CounterType.packets) verdicts;
    action drop() {
        mark_to_drop(std);
    }
    action punt() {
        meta.wanted_port = (port_id_t)std.egress_spec;
        clone_preserving_field_list(CloneType.I2E, 255, copies_t.punted);
    }
    @id(0x01000210)
    action mirror_to(@id(1) bit<16> unused) {
        clone_preserving_field_list(CloneType.I2E, 100, copies_t.mirrored);
    }
    @id(0x02000210)
    table mirrors {
        key = {
            meta.mirror: exact @id(1) @name("session");
        }
        actions = {
            mirror_to;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = 16;
    }
    apply {
        verdicts.count((bit<32>)(bit<2>)meta.verdict);
        if (meta.mirror != NO_MIRROR) {
            mirrors.apply();
        }
        switch (meta.verdict) {
            verdict_t.drop: { drop(); }
            verdict_t.trap: { punt(); drop(); }
            verdict_t.copy: { if (meta.colour != colour_t.red) { punt(); } }
            default: {}
        }
    }
}
