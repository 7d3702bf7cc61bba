/* The fabric round the user plane: who may enter, by what a packet is forwarded, where it goes.
 *
 * Filtering reads port and tags, Forwarding picks a next id, Next turns that into ports, groups and
 * copies; Leave writes what the wire needs. */
#ifndef MOBILE_FABRIC_BLOCKS_P4
#define MOBILE_FABRIC_BLOCKS_P4

#include "mobile_headers.p4"

control PacketIo(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        if (hdr.packet_out.isValid()) {
            std.egress_spec = (bit<9>)hdr.packet_out.egress_port;
            bit<1> forwards = hdr.packet_out.do_forwarding;
            hdr.packet_out.setInvalid();
            if (forwards == 0) {
                exit;
            }
        }
    }
}

control Filtering(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets) port_vlan_hits;

    action deny() {
        meta.skips_forwarding = true;
        meta.skips_next = true;
        meta.reason = 1;
        mark_to_drop(std);
    }
    action permit() {
        NoAction();
    }
    action permit_with_internal_vlan(@id(1) vlan_id_t vlan, @id(2) slice_id_t slice) {
        meta.vlan = vlan;
        meta.slice = slice;
    }
    @id(0x02000401)
    @p4runtime_role("fabric")
    @entry_restriction("vlan_is_valid == 1 || vlan_id::mask == 0;")
    table ingress_port_vlan {
        key = {
            meta.ingress_port: exact KEY_ID(1, "ig_port");
            hdr.vlan[0].isValid(): exact KEY_ID(2, "vlan_is_valid");
            hdr.vlan[0].id: ternary KEY_ID(3, "vlan_id");
            hdr.vlan[1].isValid(): optional KEY_ID(4, "inner_vlan_is_valid");
        }
        actions = {
            deny;
            permit;
            permit_with_internal_vlan;
        }
        const default_action = deny;
        counters = port_vlan_hits;
        size = 256;
    }

    action set_kind(@id(1) forwarding_t kind) {
        meta.kind = kind;
    }
    @id(0x02000402)
    table classifier {
        key = {
            meta.ingress_port: optional KEY_ID(1, "ig_port");
            hdr.ethernet.dst: ternary KEY_ID(2, "eth_dst") @format(MAC_ADDRESS);
            hdr.eth_type.value: ternary KEY_ID(3, "eth_type");
            meta.lookup.is_ip: exact KEY_ID(4, "is_ip");
        }
        actions = {
            set_kind;
        }
        const default_action = set_kind(forwarding_t.bridging);
        size = 256;
    }

    apply {
        if (hdr.vlan[0].isValid()) {
            meta.vlan = hdr.vlan[0].id;
            meta.vlan_pcp = hdr.vlan[0].pcp;
        }
        if (hdr.outer.ipv4.isValid()) {
            meta.lookup = {
                is_ip = 1,
                protocol = hdr.outer.ipv4.protocol,
                src = hdr.outer.ipv4.src,
                dst = hdr.outer.ipv4.dst,
                sport = hdr.outer.udp.sport,
                dport = hdr.outer.udp.dport
            };
        } else if (hdr.ipv4.isValid()) {
            meta.lookup = {
                is_ip = 1,
                protocol = hdr.ipv4.protocol,
                src = hdr.ipv4.src,
                dst = hdr.ipv4.dst,
                sport = hdr.tcp.isValid() ? hdr.tcp.sport : (hdr.udp.isValid() ? hdr.udp.sport : 0),
                dport = hdr.tcp.isValid() ? hdr.tcp.dport : (hdr.udp.isValid() ? hdr.udp.dport : 0)
            };
        }
        ingress_port_vlan.apply();
        if (!meta.skips_forwarding) {
            classifier.apply();
        }
    }
}

control Forwarding(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets_and_bytes) bridging_hits;
    direct_counter(CounterType.packets_and_bytes) mpls_hits;
    direct_counter(CounterType.packets_and_bytes) routing_v4_hits;

    action set_next_bridging(@id(1) next_id_t next_id) {
        meta.next = next_id;
    }
    @id(0x02000410)
    @p4runtime_role("fabric")
    table bridging {
        key = {
            meta.vlan: exact KEY_ID(1, "vlan_id");
            hdr.ethernet.dst: ternary KEY_ID(2, "eth_dst");
        }
        actions = {
            set_next_bridging;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        counters = bridging_hits;
        size = ROUTES;
    }

    action pop_mpls_and_next(@id(1) next_id_t next_id) {
        meta.was_label = 0;
        meta.next = next_id;
        hdr.mpls.setInvalid();
    }
    @id(0x02000411)
    @p4runtime_role("fabric")
    table mpls {
        key = {
            meta.was_label: exact KEY_ID(1, "mpls_label");
        }
        actions = {
            pop_mpls_and_next;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        counters = mpls_hits;
        size = 256;
    }

    action set_next_routing(@id(1) next_id_t next_id) {
        meta.next = next_id;
    }
    action drop_routing() {
        meta.skips_next = true;
        meta.reason = 2;
        mark_to_drop(std);
    }
    @id(0x02000412)
    @p4runtime_role("fabric")
    table routing_v4 {
        key = {
            meta.lookup.dst: lpm KEY_ID(1, "ipv4_dst") @format(IPV4_ADDRESS);
        }
        actions = {
            set_next_routing;
            drop_routing;
            @defaultonly NoAction;
        }
        default_action = NoAction();
        counters = routing_v4_hits;
        size = ROUTES;
    }
    @id(0x02000413)
    table routing_v6 {
        key = {
            hdr.ipv6.dst: lpm KEY_ID(1, "ipv6_dst") @format(IPV6_ADDRESS);
        }
        actions = {
            set_next_routing;
            drop_routing;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 256;
    }
    apply {
        switch (meta.kind) {
            forwarding_t.bridging: { bridging.apply(); }
            forwarding_t.mpls: {
                if (mpls.apply().hit) {
                    hdr.eth_type.value =
                        hdr.ipv6.isValid() ? (bit<16>)eth_type_t.ipv6 : (bit<16>)eth_type_t.ipv4;
                }
            }
            forwarding_t.ipv4: { routing_v4.apply(); }
            forwarding_t.ipv6: { routing_v6.apply(); }
            default: {}
        }
    }
}

control Acl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<2>>(MeterType.packets) punt_rate;

    action set_next_id(@id(1) next_id_t next_id) {
        punt_rate.read(meta.metered);
        meta.next = next_id;
        meta.skips_next = false;
    }
    action copy_to_cpu(@id(1) bit<4> reason) {
        punt_rate.read(meta.metered);
        meta.reason = reason;
        clone_preserving_field_list(CloneType.I2E, (bit<32>)CPU_SESSION, copied_t.to_cpu);
    }
    action punt_to_cpu(@id(1) bit<4> reason) {
        punt_rate.read(meta.metered);
        meta.reason = reason;
        std.egress_spec = CPU_PORT;
        meta.skips_next = true;
    }
    action drop() {
        punt_rate.read(meta.metered);
        mark_to_drop(std);
        meta.skips_next = true;
    }
    @id(0x02000420)
    @p4runtime_role("policy", "fabric")
    @entry_restriction("
        l4_dport::mask != 0 -> ip_proto == 6 || ip_proto == 17;
        ipv4_src::mask != 0 -> eth_type == 0x0800;
    ")
    table acl {
        key = {
            meta.ingress_port: optional KEY_ID(1, "ig_port");
            hdr.ethernet.dst: ternary KEY_ID(2, "eth_dst");
            hdr.eth_type.value: ternary KEY_ID(3, "eth_type");
            meta.vlan: ternary KEY_ID(4, "vlan_id");
            meta.lookup.src: ternary KEY_ID(5, "ipv4_src");
            meta.lookup.dst: ternary KEY_ID(6, "ipv4_dst");
            meta.lookup.protocol: ternary KEY_ID(7, "ip_proto");
            meta.lookup.dport: ternary KEY_ID(8, "l4_dport");
        }
        actions = {
            @proto_id(1) set_next_id;
            @proto_id(2) copy_to_cpu;
            @proto_id(3) punt_to_cpu;
            @proto_id(4) drop;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        counters = hits;
        meters = punt_rate;
        size = 128;
    }
    apply {
        acl.apply();
    }
}

control Next(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets) simple_hits;
    direct_counter(CounterType.packets) hashed_hits;

    action output(bit<9> port) {
        std.egress_spec = port;
    }
    action set_vlan(@id(1) vlan_id_t vlan_id) {
        meta.vlan = vlan_id;
    }
    @id(0x02000430)
    @p4runtime_role("fabric")
    table vlan {
        key = {
            meta.next: exact KEY_ID(1, "next_id");
        }
        actions = {
            set_vlan;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = NEXT_IDS;
    }

    action set_mpls(@id(1) mpls_label_t label) {
        meta.push_label = label;
    }
    @id(0x02000431)
    @p4runtime_role("fabric")
    table mpls_next {
        key = {
            meta.next: exact KEY_ID(1, "next_id");
        }
        actions = {
            set_mpls;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = NEXT_IDS;
    }

    action output_simple(@id(1) port_num_t port_num) {
        output((bit<9>)port_num);
    }
    action routing_simple(@id(1) port_num_t port_num, @id(2) mac_t smac, @id(3) mac_t dmac) {
        hdr.ethernet.src = smac;
        hdr.ethernet.dst = dmac;
        output((bit<9>)port_num);
    }
    @id(0x02000432)
    @p4runtime_role("fabric")
    table simple {
        key = {
            meta.next: exact KEY_ID(1, "next_id");
        }
        actions = {
            output_simple;
            routing_simple;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        counters = simple_hits;
        size = NEXT_IDS;
    }

    @id(0x11000433)
    @max_group_size(16)
    action_selector(HashAlgorithm.crc16, 256, 16) hashed_profile;
    action routing_hashed(@id(1) port_num_t port_num, @id(2) mac_t smac, @id(3) mac_t dmac) {
        hdr.ethernet.src = smac;
        hdr.ethernet.dst = dmac;
        output((bit<9>)port_num);
    }
    @id(0x02000433)
    @p4runtime_role("fabric")
    table hashed {
        key = {
            meta.next: exact KEY_ID(1, "next_id");
            meta.lookup.src: selector;
            meta.lookup.dst: selector;
            meta.lookup.protocol: selector;
            meta.lookup.sport: selector;
            meta.lookup.dport: selector;
        }
        actions = {
            routing_hashed;
        }
        implementation = hashed_profile;
        counters = hashed_hits;
        size = NEXT_IDS;
    }

    action set_group(@id(1) bit<16> group_id) {
        std.mcast_grp = group_id;
        meta.is_multicast = true;
    }
    @id(0x02000434)
    @p4runtime_role("fabric")
    table multicast {
        key = {
            meta.next: exact KEY_ID(1, "next_id");
        }
        actions = {
            set_group;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = NEXT_IDS;
    }

    apply {
        if (meta.skips_next) {
            return;
        }
        if (meta.next == 0) {
            mark_to_drop(std);
            return;
        }
        vlan.apply();
        mpls_next.apply();
        if (!simple.apply().hit) {
            if (!hashed.apply().hit) {
                multicast.apply();
            }
        }
    }
}

/* Classes of service: what queue a packet waits in, and what its DSCP says to the next switch. */
control Qos(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action set_class(@id(1) slice_id_t slice, @id(2) tc_t tc) {
        meta.slice = slice;
        meta.tc = tc;
    }
    @id(0x02000440)
    table classes {
        key = {
            meta.lookup.src: ternary KEY_ID(1, "ipv4_src");
            meta.lookup.dst: ternary KEY_ID(2, "ipv4_dst");
            meta.lookup.protocol: ternary KEY_ID(3, "ip_proto");
            meta.lookup.sport: range KEY_ID(4, "l4_sport");
            meta.lookup.dport: range KEY_ID(5, "l4_dport");
        }
        actions = {
            set_class;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = 64;
    }

    action set_queue(@id(1) bit<3> queue) {
        std.priority = queue;
    }
    action police() {
        mark_to_drop(std);
    }
    @id(0x02000441)
    table queues {
        key = {
            meta.slice: exact KEY_ID(1, "slice_id");
            meta.tc: exact KEY_ID(2, "tc");
            meta.metered: ternary KEY_ID(3, "colour");
        }
        actions = {
            set_queue;
            police;
        }
        const default_action = set_queue(0);
        size = 256;
    }
    apply {
        if (!meta.upf.wanted && meta.lookup.is_ip == 1) {
            classes.apply();
        }
        queues.apply();
    }
}

control Leave(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    counter<bit<9>>(512, CounterType.packets_and_bytes) left_by;

    action push_vlan() {
        hdr.vlan[0].setValid();
        hdr.vlan[0].eth_type = eth_type_t.vlan;
        hdr.vlan[0].pcp = meta.vlan_pcp;
        hdr.vlan[0].dei = 0;
        hdr.vlan[0].id = meta.vlan;
    }
    action pop_vlan() {
        hdr.vlan[0].setInvalid();
        meta.pops_vlan = true;
    }
    @id(0x02000450)
    @p4runtime_role("fabric")
    table egress_vlan {
        key = {
            meta.vlan: exact KEY_ID(1, "vlan_id");
            std.egress_port: exact KEY_ID(2, "eg_port");
        }
        actions = {
            push_vlan;
            pop_vlan;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = 256;
    }

    action push_mpls() {
        hdr.mpls.setValid();
        hdr.mpls.label = meta.push_label;
        hdr.mpls.tc = 0;
        hdr.mpls.bottom = 1;
        hdr.mpls.ttl = DEFAULT_TTL;
        hdr.eth_type.value = eth_type_t.mpls;
    }

    action rewrite_dscp(@id(1) dscp_t dscp) {
        meta.dscp = dscp;
    }
    action clear_dscp() {
        meta.dscp = 0;
    }
    @id(0x02000451)
    table rewriter {
        key = {
            std.egress_port: exact KEY_ID(1, "eg_port");
            meta.slice: optional KEY_ID(2, "slice_id");
            meta.tc: optional KEY_ID(3, "tc");
        }
        actions = {
            rewrite_dscp;
            clear_dscp;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = 512;
    }

    apply {
        if (meta.is_multicast && (bit<9>)meta.ingress_port == std.egress_port) {
            mark_to_drop(std);
            exit;
        }
        if (rewriter.apply().hit) {
            if (hdr.outer.ipv4.isValid()) {
                hdr.outer.ipv4.class.dscp = meta.dscp;
            } else if (hdr.ipv4.isValid()) {
                hdr.ipv4.class.dscp = meta.dscp;
            } else if (hdr.ipv6.isValid()) {
                hdr.ipv6.class.dscp = meta.dscp;
            }
        }
        if (meta.push_label != 0) {
            push_mpls();
        }
        egress_vlan.apply();
        if (meta.kind == forwarding_t.ipv4 && hdr.ipv4.isValid() && !meta.upf.encapsulates) {
            hdr.ipv4.ttl = hdr.ipv4.ttl |-| 1;
            if (hdr.ipv4.ttl == 0) {
                mark_to_drop(std);
                exit;
            }
        } else if (meta.kind == forwarding_t.ipv6 && hdr.ipv6.isValid()) {
            hdr.ipv6.hop_limit = hdr.ipv6.hop_limit |-| 1;
            if (hdr.ipv6.hop_limit == 0) {
                mark_to_drop(std);
                exit;
            }
        }
        left_by.count(std.egress_port);
    }
}

#endif
