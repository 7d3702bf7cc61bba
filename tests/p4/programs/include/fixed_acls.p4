/* The three access lists: before routing, after it, and on the way out. */
#ifndef FIXED_ACLS_P4
#define FIXED_ACLS_P4

#include "fixed_headers.p4"

control AclPreIngress(in headers_t hdr, inout meta_t meta) {
    direct_counter(CounterType.packets_and_bytes) hits;

    @id(0x01000501)
    action set_vrf(@id(1) @refers_to(vrfs, vrf_id) vrf_id_t vrf_id) {
        hits.count();
        meta.vrf = vrf_id;
    }
    @id(0x01000502)
    action set_label(@id(1) acl_label_t label) {
        hits.count();
        meta.label = label;
    }
    FOR_SDN
    @id(0x02000501)
    @entry_restriction("
        // Of what has them only.
        dscp::mask != 0 -> (is_ip == 1);
        dst_ip::mask != 0 -> ether_type == 0x0800;
        vlan_id::mask == 0 || vlan_id::mask == 0xFFF;
    ")
    table acl_pre_ingress {
        key = {
            meta.is_ip: optional @id(1) @name("is_ip");
            hdr.ethernet.src: ternary @id(2) @name("src_mac") @format(MAC_ADDRESS);
            hdr.ethernet.type_: ternary @id(3) @name("ether_type");
            hdr.ipv4.dst: ternary @id(4) @name("dst_ip") @format(IPV4_ADDRESS);
            meta.dscp: ternary @id(5) @name("dscp");
            meta.vlan: ternary @id(6) @name("vlan_id");
            meta.ingress_port: optional @id(7) @name("in_port");
        }
        actions = {
            @proto_id(1) set_vrf;
            @proto_id(2) set_label;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        counters = hits;
        size = ACL_ENTRIES;
    }
    apply {
        acl_pre_ingress.apply();
    }
}

control AclIngress(in headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    direct_meter<bit<2>>(MeterType.bytes) rate;
    direct_counter(CounterType.packets_and_bytes) hits;

    @id(0x01000510)
    action copy(@id(1) queue_id_t qos_queue) {
        hits.count();
        rate.read(meta.metered);
        meta.marked_to_copy = 1;
    }
    @id(0x01000511)
    action trap(@id(1) queue_id_t qos_queue) {
        hits.count();
        rate.read(meta.metered);
        meta.marked_to_copy = 1;
        meta.acl_drops = 1;
    }
    @id(0x01000512)
    action forward() {
        hits.count();
        rate.read(meta.metered);
    }
    @id(0x01000513)
    action mirror(@id(1) @refers_to(sessions, session) mirror_session_id_t session) {
        hits.count();
        meta.mirror.wanted = 1;
        meta.mirror.session = session;
    }
    @id(0x01000514)
    action drop() {
        hits.count();
        meta.acl_drops = 1;
    }
    @id(0x01000515)
    action redirect_to_nexthop(@id(1) nexthop_id_t nexthop_id) {
        hits.count();
        meta.nexthop = nexthop_id;
        meta.has_route = 1;
        meta.has_group = 0;
    }
    @id(0x01000516)
    @action_restriction("multicast_group_id != 0;")
    action redirect_to_group(@id(1) multicast_group_id_t multicast_group_id) {
        hits.count();
        std.mcast_grp = multicast_group_id;
        meta.has_route = 0;
        meta.has_group = 0;
    }
    FOR_SDN
    @id(0x02000510)
    @entry_restriction("
        ttl::mask != 0 -> is_ip == 1;
        l4_dport::mask != 0 -> (protocol == 6 || protocol == 17);
        icmp_type::mask != 0 -> (protocol == 1 || protocol == 58);
    ")
    table acl_ingress {
        key = {
            meta.is_ip: optional @id(1) @name("is_ip");
            hdr.ethernet.type_: ternary @id(2) @name("ether_type");
            hdr.ethernet.dst: ternary @id(3) @name("dst_mac") @format(MAC_ADDRESS);
            hdr.ipv4.src: ternary @id(4) @name("src_ip") @format(IPV4_ADDRESS);
            hdr.ipv4.dst: ternary @id(5) @name("dst_ip") @format(IPV4_ADDRESS);
            hdr.ipv6.dst[127:64]: ternary @id(6) @name("dst_ipv6") @format(IPV6_ADDRESS);
            meta.ttl: ternary @id(7) @name("ttl");
            meta.protocol: ternary @id(8) @name("protocol");
            hdr.icmp.type_: ternary @id(9) @name("icmp_type");
            meta.dport: ternary @id(10) @name("l4_dport");
            meta.label: ternary @id(11) @name("label");
            meta.ingress_port: optional @id(12) @name("in_port");
        }
        actions = {
            @proto_id(1) copy;
            @proto_id(2) trap;
            @proto_id(3) forward;
            @proto_id(4) mirror;
            @proto_id(5) drop;
            @proto_id(6) redirect_to_nexthop;
            @proto_id(7) redirect_to_group;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        meters = rate;
        counters = hits;
        size = ACL_ENTRIES;
    }
    apply {
        acl_ingress.apply();
        if (meta.metered == 2) {
            meta.colour = colour_t.red;
            meta.marked_to_copy = 0;
        }
    }
}

control AclEgress(in headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets_and_bytes) hits;

    @id(0x01000520)
    action drop() {
        hits.count();
        mark_to_drop(std);
    }
    FOR_SDN
    @id(0x02000520)
    @entry_restriction("dscp::mask != 0 -> ether_type == 0x0800 || ether_type == 0x86DD;")
    table acl_egress {
        key = {
            hdr.ethernet.type_: ternary @id(1) @name("ether_type");
            meta.protocol: ternary @id(2) @name("protocol");
            meta.dport: ternary @id(3) @name("l4_dport");
            (port_id_t)std.egress_port: optional @id(4) @name("out_port");
            meta.dscp: ternary @id(5) @name("dscp");
        }
        actions = {
            @proto_id(1) drop;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        counters = hits;
        size = ACL_ENTRIES;
    }
    apply {
        acl_egress.apply();
    }
}

#endif
