/* Which way: virtual routers, routes, groups of next hops, and how their packets are written. */
#include "edge_headers.p4"

control Admit(in headers_t hdr, inout meta_t meta) {
    action admit() {
        meta.admitted = 1;
    }
    @p4runtime_role("control plane")
    @id(0x02000101)
    @entry_restriction("
        // One address exactly, or all of them; ports only with an address.
        dst::mask == -1 || dst::mask == 0;
        in_port::mask != 0 -> dst::mask != 0;
    ")
    table l3_admit {
        key = {
            hdr.ethernet.dst: ternary @id(1) @name("dst") @format(MAC_ADDRESS);
            meta.ingress_port: optional @id(2) @name("in_port");
        }
        actions = {
            admit;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = 64;
    }
    apply {
        l3_admit.apply();
    }
}

control Vrf(in headers_t hdr, inout meta_t meta) {
    @id(0x01000102)
    action set_vrf(@id(1) vrf_id_t vrf) {
        meta.vrf = vrf;
    }
    @id(0x02000102)
    @entry_restriction("vlan != 0 && vlan != 4095;")
    table vlan_vrf {
        key = {
            meta.vlan: exact @id(1) @name("vlan");
        }
        actions = {
            set_vrf;
        }
        default_action = set_vrf(DEFAULT_VRF);
        size = 4096;
    }
    @id(0x02000103)
    table vrf_exists {
        key = {
            meta.vrf: exact @id(1) @name("vrf_id");
        }
        actions = {
            NoAction;
        }
        size = 64;
    }
    apply {
        if (meta.vlan != NO_VLAN && meta.vlan != INTERNAL_VLAN) {
            vlan_vrf.apply();
        }
        vrf_exists.apply();
    }
}

bit<32> folded(in ipv6_t a) {
    return a[127:96] ^ a[95:64] ^ a[63:32] ^ a[31:0];
}

control Fold(in headers_t hdr, inout meta_t meta) {
    apply {
        meta.folded = { src = 0, dst = 0, sport = meta.sport, dport = meta.dport };
        if (hdr.ipv4.isValid()) {
            meta.folded.src = hdr.ipv4.src;
            meta.folded.dst = hdr.ipv4.dst;
        } else if (hdr.ipv6.isValid()) {
            meta.folded.src = folded(hdr.ipv6.src);
            meta.folded.dst = folded(hdr.ipv6.dst);
        }
    }
}

control Route(in headers_t hdr, inout meta_t meta) {
    action drop() {
        meta.verdict = verdict_t.drop;
    }
    action to_nexthop(@id(1) @refers_to(nexthops, nexthop_id) nexthop_id_t nexthop) {
        meta.nexthop = nexthop;
    }
    action to_group(@id(1) group_id_t group) {
        meta.use_group = true;
        meta.group = group;
    }
    action trap() {
        meta.verdict = verdict_t.trap;
    }
    direct_counter(CounterType.packets_and_bytes) ipv4_hits;
    @id(0x02000110)
    @entry_restriction("vrf_id != '';")
    table ipv4 {
        key = {
            meta.vrf: exact @id(1) @name("vrf_id") @refers_to(vrf_exists, vrf_id);
            hdr.ipv4.dst: lpm @id(2) @name("ipv4_dst") @format(IPV4_ADDRESS);
        }
        actions = {
            @proto_id(1) drop;
            @proto_id(2) to_nexthop;
            @proto_id(3) to_group;
            @proto_id(4) trap;
        }
        const default_action = drop;
        counters = ipv4_hits;
        size = 1024;
    }
    @id(0x02000111)
    table ipv6 {
        key = {
            meta.vrf: exact @id(1) @name("vrf_id");
            hdr.ipv6.dst: lpm @id(2) @name("ipv6_dst") @format(IPV6_ADDRESS);
        }
        actions = {
            drop;
            to_nexthop;
            to_group;
            trap;
        }
        const default_action = drop;
        size = 512;
    }

    @id(0x11000120)
    @max_group_size(MAX_WAYS)
    @selector_size_semantics("sum_of_weights")
    action_selector(HashAlgorithm.crc16, 4096, 14) ways;
    @id(0x02000120)
    @oneshot
    table groups {
        key = {
            meta.group: exact @id(1) @name("group_id");
            meta.folded.src: selector;
            meta.folded.dst: selector;
            meta.folded.sport: selector;
            meta.folded.dport: selector;
        }
        actions = {
            to_nexthop;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        implementation = ways;
        size = 256;
    }
    apply {
        if (hdr.ipv4.isValid()) {
            ipv4.apply();
        } else if (hdr.ipv6.isValid()) {
            ipv6.apply();
        }
        if (meta.use_group) {
            groups.apply();
        }
    }
}

control Resolve(inout meta_t meta, inout standard_metadata_t std) {
    action set_nexthop(@id(1) interface_id_t interface, @id(2) neighbour_id_t neighbour) {
        meta.interface = interface;
        meta.neighbour = neighbour;
        meta.rewrite.decrement_ttl = true;
    }
    action set_interface(@id(1) port_id_t port, @id(2) @format(MAC_ADDRESS) mac_t src,
                         @id(3) vlan_id_t vlan) {
        std.egress_spec = (bit<9>)port;
        meta.rewrite.src = src;
        meta.rewrite.vlan = vlan;
    }
    action set_neighbour(@id(1) @format(MAC_ADDRESS) mac_t dst) {
        meta.rewrite.dst = dst;
    }
    table nexthops {
        key = {
            meta.nexthop: exact @id(1) @name("nexthop_id");
        }
        actions = {
            set_nexthop;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = 1024;
    }
    table interfaces {
        key = {
            meta.interface: exact @id(1) @name("interface_id");
        }
        actions = {
            set_interface;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = 256;
    }
    table neighbours {
        key = {
            meta.interface: exact @id(1) @name("interface_id");
            meta.neighbour: exact @id(2) @name("neighbour_id");
        }
        actions = {
            set_neighbour;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = 1024;
    }
    apply {
        if (nexthops.apply().hit) {
            if (interfaces.apply().hit) {
                neighbours.apply();
            }
        }
    }
}
