/* Virtual routers, routes, groups of weighted ways, and how a packet is written on its way. */
#ifndef FIXED_ROUTING_P4
#define FIXED_ROUTING_P4

#include "fixed_headers.p4"

control Admission(in headers_t hdr, inout meta_t meta) {
    @id(0x01000530)
    action admit_to_l3() {
        meta.admitted = 1;
    }
    FOR_SDN
    @id(0x02000530)
    @entry_restriction("in_port::mask != 0 -> dst_mac::mask != 0;")
    table l3_admit {
        key = {
            hdr.ethernet.dst: ternary @id(1) @name("dst_mac") @format(MAC_ADDRESS);
            meta.ingress_port: optional @id(2) @name("in_port");
        }
        actions = {
            admit_to_l3;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = 64;
    }
    apply {
        l3_admit.apply();
    }
}

control Decapsulation(inout headers_t hdr, inout meta_t meta) {
    @id(0x01000531)
    action decapsulate() {
        hdr.tunnel_ipv6.setInvalid();
        hdr.tunnel_gre.setInvalid();
        hdr.ethernet.type_ = ether_type_t.ipv4;
    }
    FOR_SDN
    @id(0x02000531)
    table tunnel_ends {
        key = {
            hdr.tunnel_ipv6.dst: ternary @id(1) @name("dst_ipv6") @format(IPV6_ADDRESS);
            hdr.tunnel_ipv6.src: ternary @id(2) @name("src_ipv6") @format(IPV6_ADDRESS);
        }
        actions = {
            decapsulate;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = 126;
    }
    apply {
        if (meta.tunnelled == 1) {
            tunnel_ends.apply();
        }
    }
}

control Routes(in headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    bit<16> flow_hash;

    @id(0x01000532)
    action drop() {
        meta.acl_drops = 1;
    }
    @id(0x01000533)
    action set_nexthop_id(@id(1) @refers_to(nexthops, nexthop_id) nexthop_id_t nexthop_id) {
        meta.nexthop = nexthop_id;
        meta.has_route = 1;
    }
    @id(0x01000534)
    action set_group_id(@id(1) @refers_to(groups, wcmp_group_id) wcmp_group_id_t wcmp_group_id) {
        meta.group = wcmp_group_id;
        meta.has_group = 1;
        meta.has_route = 1;
    }
    @id(0x01000535)
    @action_restriction("multicast_group_id != 0;")
    action set_multicast(@id(1) multicast_group_id_t multicast_group_id) {
        std.mcast_grp = multicast_group_id;
    }

    FOR_SDN
    @id(0x02000532)
    @entry_restriction("vrf_id != '';")
    table vrfs {
        key = {
            meta.vrf: exact @id(1) @name("vrf_id");
        }
        actions = {
            @proto_id(1) NoAction;
        }
        const default_action = NoAction;
        size = 64;
    }
    FOR_SDN
    @id(0x02000533)
    table ipv4_routes {
        key = {
            meta.vrf: exact @id(1) @name("vrf_id") @refers_to(vrfs, vrf_id);
            hdr.ipv4.dst: lpm @id(2) @name("ipv4_dst") @format(IPV4_ADDRESS);
        }
        actions = {
            @proto_id(1) drop;
            @proto_id(2) set_nexthop_id;
            @proto_id(3) set_group_id;
        }
        const default_action = drop;
        size = 1024;
    }
    FOR_SDN
    @id(0x02000534)
    table ipv6_routes {
        key = {
            meta.vrf: exact @id(1) @name("vrf_id") @refers_to(vrfs, vrf_id);
            hdr.ipv6.dst: lpm @id(2) @name("ipv6_dst") @format(IPV6_ADDRESS);
        }
        actions = {
            @proto_id(1) drop;
            @proto_id(2) set_nexthop_id;
            @proto_id(3) set_group_id;
        }
        const default_action = drop;
        size = 512;
    }
    FOR_REPLICATION
    @id(0x02000535)
    @entry_restriction("
        // Multicast addresses only.
        ipv4_dst >= 0xE0000000 && ipv4_dst <= 0xEFFFFFFF;
    ")
    table ipv4_multicast {
        key = {
            meta.vrf: exact @id(1) @name("vrf_id") @refers_to(vrfs, vrf_id);
            hdr.ipv4.dst: exact @id(2) @name("ipv4_dst") @format(IPV4_ADDRESS);
        }
        actions = {
            @proto_id(1) set_multicast;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = 128;
    }

    FOR_SDN
    @id(0x11000536)
    @max_group_size(WCMP_MAX_WAYS)
    @selector_size_semantics("sum_of_members")
    @max_member_weight(4095)
    action_selector(HashAlgorithm.identity, WCMP_MEMBERS, 16) wcmp;
    FOR_SDN
    @id(0x02000536)
    @oneshot
    table groups {
        key = {
            meta.group: exact @id(1) @name("wcmp_group_id");
            flow_hash: selector;
        }
        actions = {
            @proto_id(1) set_nexthop_id;
        }
        implementation = wcmp;
        size = WCMP_GROUPS;
    }

    apply {
        vrfs.apply();
        if (meta.admitted == 0) {
            return;
        }
        if (hdr.ipv4.isValid()) {
            if (hdr.ipv4.dst[31:28] == 0xE) {
                ipv4_multicast.apply();
            } else {
                ipv4_routes.apply();
            }
        } else if (hdr.ipv6.isValid()) {
            ipv6_routes.apply();
        }
        if (meta.has_group == 1) {
            hash(flow_hash, HashAlgorithm.crc16, 16w0, {
                hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv6.src, hdr.ipv6.dst, meta.protocol,
                meta.sport, meta.dport
            }, 17w0x10000);
            groups.apply();
        }
    }
}

control Resolution(inout meta_t meta, inout standard_metadata_t std) {
    @id(0x01000540)
    action set_ip_nexthop(@id(1) router_interface_id_t router_interface_id,
                          @id(2) neighbour_id_t neighbour_id) {
        meta.interface = router_interface_id;
        meta.neighbour = neighbour_id;
        meta.rewrites = { decrement_ttl = 1, src_mac = 1, dst_mac = 1, vlan = 1 };
    }
    @id(0x01000541)
    action set_nexthop_without_rewrites(@id(1) router_interface_id_t router_interface_id,
                                        @id(2) neighbour_id_t neighbour_id,
                                        @id(3) bit<1> disable_ttl_decrement,
                                        @id(4) bit<1> disable_vlan_rewrite) {
        meta.interface = router_interface_id;
        meta.neighbour = neighbour_id;
        meta.rewrites.decrement_ttl = ~disable_ttl_decrement;
        meta.rewrites.src_mac = 1;
        meta.rewrites.dst_mac = 1;
        meta.rewrites.vlan = ~disable_vlan_rewrite;
    }
    @id(0x01000542)
    action set_tunnel_nexthop(@id(1) @refers_to(tunnels, tunnel_id) tunnel_id_t tunnel_id) {
        meta.tunnel = tunnel_id;
        meta.tunnelled = 1;
        meta.rewrites = { decrement_ttl = 1, src_mac = 1, dst_mac = 1, vlan = 1 };
    }
    FOR_SDN
    @id(0x02000540)
    table nexthops {
        key = {
            meta.nexthop: exact @id(1) @name("nexthop_id");
        }
        actions = {
            @proto_id(1) set_ip_nexthop;
            @proto_id(2) set_nexthop_without_rewrites;
            @proto_id(3) set_tunnel_nexthop;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = 1024;
    }

    @id(0x01000543)
    action mark_for_tunnel(@id(1) @format(IPV6_ADDRESS) ipv6_t encap_src_ip,
                           @id(2) @format(IPV6_ADDRESS) ipv6_t encap_dst_ip,
                           @id(3) router_interface_id_t router_interface_id,
                           @id(4) neighbour_id_t neighbour_id) {
        meta.tunnel_src = encap_src_ip;
        meta.tunnel_dst = encap_dst_ip;
        meta.interface = router_interface_id;
        meta.neighbour = neighbour_id;
    }
    FOR_SDN
    @id(0x02000541)
    table tunnels {
        key = {
            meta.tunnel: exact @id(1) @name("tunnel_id");
        }
        actions = {
            @proto_id(1) mark_for_tunnel;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = 255;
    }

    @id(0x01000544)
    action set_port_and_src_mac(@id(1) port_id_t port, @id(2) @format(MAC_ADDRESS) mac_t src_mac,
                                @id(3) vlan_id_t vlan_id) {
        std.egress_spec = (bit<9>)port;
        meta.target_port = port;
        meta.src_mac = src_mac;
        meta.vlan = vlan_id;
    }
    FOR_SDN
    @id(0x02000542)
    table router_interfaces {
        key = {
            meta.interface: exact @id(1) @name("router_interface_id");
        }
        actions = {
            @proto_id(1) set_port_and_src_mac;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = 256;
    }

    @id(0x01000545)
    action set_dst_mac(@id(1) @format(MAC_ADDRESS) mac_t dst_mac) {
        meta.dst_mac = dst_mac;
    }
    FOR_SDN
    @id(0x02000543)
    table neighbours {
        key = {
            meta.interface: exact @id(1) @name("router_interface_id")
                @refers_to(router_interfaces, router_interface_id);
            meta.neighbour: exact @id(2) @name("neighbour_id");
        }
        actions = {
            @proto_id(1) set_dst_mac;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = 1024;
    }
    apply {
        if (meta.has_route == 0) {
            return;
        }
        meta.tunnelled = 0;
        nexthops.apply();
        if (meta.tunnelled == 1) {
            tunnels.apply();
        }
        if (router_interfaces.apply().hit) {
            neighbours.apply();
        }
    }
}

/* Copies for the controller and for whoever watches. */
control Mirrors(inout meta_t meta) {
    @id(0x01000550)
    action to_collector(@id(1) port_id_t port) {
        meta.target_port = port;
    }
    FOR_SDN
    @id(0x02000550)
    table sessions {
        key = {
            meta.mirror.session: exact @id(1) @name("session");
        }
        actions = {
            @proto_id(1) to_collector;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = 4;
    }
    apply {
        if (meta.marked_to_copy == 1) {
            clone_preserving_field_list(CloneType.I2E, COPY_TO_CPU, copies_t.punted);
        } else if (meta.mirror.wanted == 1) {
            if (sessions.apply().hit) {
                clone_preserving_field_list(CloneType.I2E, MIRROR, copies_t.mirrored);
            }
        }
    }
}

control Rewrites(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    @id(0x01000560)
    action set_copy_source(@id(1) @format(MAC_ADDRESS) mac_t src_mac, @id(2) vlan_id_t vlan_id) {
        meta.src_mac = src_mac;
        meta.vlan = vlan_id;
        meta.rewrites = { decrement_ttl = 1, src_mac = 1, dst_mac = 0, vlan = 1 };
    }
    FOR_REPLICATION
    @id(0x02000560)
    table multicast_interfaces {
        key = {
            (port_id_t)std.egress_port: exact @id(1) @name("multicast_replica_port");
            std.egress_rid: exact @id(2) @name("multicast_replica_instance");
        }
        actions = {
            @proto_id(1) set_copy_source;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = 110;
    }
    action encapsulate() {
        hdr.tunnel_ipv6 = {
            version = 6,
            dscp = meta.dscp,
            ecn = hdr.ipv4.ecn,
            flow = 0,
            payload_len = hdr.ipv4.total_len + 4,
            next = GRE,
            hop_limit = 64,
            src = meta.tunnel_src,
            dst = meta.tunnel_dst
        };
        hdr.tunnel_gre = {
            has_checksum = 0,
            has_routing = 0,
            has_key = 0,
            has_sequence = 0,
            reserved = 0,
            version = 0,
            protocol = (bit<16>)ether_type_t.ipv4
        };
        hdr.ethernet.type_ = ether_type_t.ipv6;
    }
    apply {
        if (std.instance_type == REPLICATED) {
            multicast_interfaces.apply();
        }
        if (meta.rewrites.src_mac == 1) {
            hdr.ethernet.src = meta.src_mac;
        }
        if (meta.rewrites.dst_mac == 1) {
            hdr.ethernet.dst = meta.dst_mac;
        }
        if (meta.rewrites.decrement_ttl == 1) {
            if (hdr.ipv4.isValid()) {
                if (hdr.ipv4.ttl <= 1) {
                    mark_to_drop(std);
                }
                hdr.ipv4.ttl = hdr.ipv4.ttl |-| 1;
            } else if (hdr.ipv6.isValid()) {
                if (hdr.ipv6.hop_limit <= 1) {
                    mark_to_drop(std);
                }
                hdr.ipv6.hop_limit = hdr.ipv6.hop_limit |-| 1;
            }
        }
        if (meta.tunnelled == 1 && hdr.ipv4.isValid()) {
            encapsulate();
        }
        if (meta.rewrites.vlan == 1) {
            if (meta.vlan == NO_VLAN && hdr.vlan.isValid()) {
                hdr.ethernet.type_ = hdr.vlan.type_;
                hdr.vlan.setInvalid();
            } else if (meta.vlan != NO_VLAN) {
                if (!hdr.vlan.isValid()) {
                    hdr.vlan.setValid();
                    hdr.vlan.pcp = 0;
                    hdr.vlan.dei = 0;
                    hdr.vlan.type_ = hdr.ethernet.type_;
                    hdr.ethernet.type_ = ether_type_t.vlan;
                }
                hdr.vlan.id = meta.vlan;
            }
        }
    }
}

control MirrorHeaders(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    register<bit<32>, bit<1>>(1) sequence;

    @id(0x01000570)
    action encapsulate(@id(1) mac_t src_mac, @id(2) mac_t dst_mac, @id(3) ipv6_t src_ip,
                       @id(4) ipv6_t dst_ip, @id(5) bit<16> l4_sport, @id(6) bit<8> hop_limit) {
        bit<16> len = (bit<16>)std.packet_length;
        bit<32> number;
        sequence.read(number, 0);
        sequence.write(0, number + 1);
        hdr.mirror_ethernet = { dst = dst_mac, src = src_mac, type_ = (bit<16>)ether_type_t.ipv6 };
        hdr.mirror_ipv6 = {
            version = 6,
            dscp = 0,
            ecn = 0,
            flow = 0,
            payload_len = len + 20,
            next = 17,
            hop_limit = hop_limit,
            src = src_ip,
            dst = dst_ip
        };
        hdr.mirror_udp = { sport = l4_sport, dport = IPFIX, len = len + 20, checksum = 0 };
        hdr.ipfix = {
            version = 10,
            len = len + 12,
            sequence = number,
            ingress_port = (bit<16>)(bit<9>)meta.ingress_port,
            egress_port = (bit<16>)(bit<9>)meta.target_port
        };
    }
    FOR_SDN
    @id(0x02000570)
    table mirror_encapsulations {
        key = {
            meta.mirror.session: exact @id(1) @name("session");
        }
        actions = {
            @proto_id(1) encapsulate;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = 4;
    }
    apply {
        mirror_encapsulations.apply();
    }
}

#endif
