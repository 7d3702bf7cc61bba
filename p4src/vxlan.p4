// VXLAN: tenants with networks of their own, whose addresses may be the same (RFC 7348).
//
// A tenant's host hangs at a port that is its tenant's: what comes by it is looked up among that
// tenant's addresses alone, and crosses the fabric inside of packets between leaves:
//
//     Ethernet | IPv4 | UDP 4789 | VXLAN with the network's number (VNI) | the tenant's frame
//
// Routed.  What is sent to the leaf's MAC: by `tenant_routes` to a port of this leaf, or in the
//          tenant's routed VNI to another leaf, whose MAC the frame in it is sent to (symmetric
//          routing and bridging, RFC 9135).
// Bridged. Anything else, IP or not: by `tenant_macs` to a port, or in the network's bridged VNI. What
//          nobody knows, or is for all, is flooded: one goes to the next of `floods`, as anything
//          does that is forwarded, and a copy goes round for those after it. It is best effort from
//          here on: nobody pauses, or is paused, for what a host may send to all.
// The end. A frame to the leaf's own address (route.p4) goes round once, and is taken apart a layer
//          deeper (parser.p4): what is inside is looked at as any packet. It has to be of a VNI that
//          is known here, from a leaf that takes part in it.
//
// Outside stand the DSCP and the ECN bits of what is inside, so that its class is the same on every
// link; at the end what happened to them outside holds inside too: the DSCP as it came (RFC 2983,
// uniform), marks as RFC 6040 has it. A flow's hash is the UDP source port, so that it keeps its path.
//
// Reads:  the ingress port, the packet's length, the MAC addresses, the IP header, hdr.udp,
//         hdr.vxlan; meta.tenancy, meta.flood_step.
// Writes: hdr.outer_*, hdr.vxlan; the MAC addresses and TTL of the IP header inside; meta.net,
//         meta.tenancy, meta.is_from_tunnel, meta.is_bridged, meta.leaf_mac, meta.vtep, meta.vni;
//         meta.out_port and meta.next_mac or meta.group and meta.far_leaf; of what is flooded
//         meta.is_flooded, meta.flood_step, meta.copy_*, meta.priority and
//         standard_metadata.priority; meta.drop_reason.
// Stops:  who has which MAC is told by tables, not learned here. No path by congestion (conga.p4), no
//         telemetry and no trimming of what is inside.

#ifndef VXLAN_P4
#define VXLAN_P4

#include "headers.p4"
#include "sizes.p4"
#include "flow.p4"

const bit<8> VXLAN_HAS_VNI = 0x08;

// --- the end: the first time --------------------------------------------------------------------

control vxlan_take(in headers_t hdr, inout metadata_t meta,
                   in standard_metadata_t standard_metadata) {
    apply {
        if (hdr.udp.isValid() && hdr.udp.dst_port == UDP_PORT_VXLAN) {
            meta.copy_in_port = standard_metadata.ingress_port;    // which is lost
            resubmit_preserving_field_list(FLOOD_FIELDS);
        } else {
            meta.drop_reason = drop_reason_t.BAD_TUNNEL;
        }
    }
}

// --- the end: the second time -------------------------------------------------------------------

control vxlan_arrive(inout headers_t hdr, inout metadata_t meta) {
    action routed(tenant_net_t net, mac_t own_mac) {
        meta.net = net;
        meta.is_bridged = false;
        meta.drop_reason = hdr.ethernet.dst_addr == own_mac ? drop_reason_t.NONE
                                                            : drop_reason_t.FOREIGN_MAC;
    }

    action bridged(tenant_net_t net) {
        meta.net = net;
        meta.is_bridged = true;
    }

    action unknown_vni() {
        meta.drop_reason = drop_reason_t.UNKNOWN_VNI;
    }

    table vnis {
        key = { hdr.vxlan.vni : exact; }
        actions = { routed; bridged; unknown_vni; }
        default_action = unknown_vni();
        size = TENANT_NETS;
    }

    action foreign_tunnel() {
        meta.drop_reason = drop_reason_t.FOREIGN_TUNNEL;
    }

    // Who takes part in what.
    table vteps {
        key = {
            hdr.outer_ipv4.src_addr : exact;
            hdr.vxlan.vni           : exact;
        }
        actions = { NoAction; foreign_tunnel; }
        default_action = foreign_tunnel();
        size = VTEPS;
    }

    // By outside (first) and inside. The brackets are for p4c, which reads `a ? b : c ? d : e` from
    // the left.
    #define COMBINED_ECN(inside)                                                       \
        (inside == ECN_NOT_CAPABLE || inside == ECN_CONGESTED ? inside :               \
         (hdr.outer_ipv4.ecn == ECN_CONGESTED || hdr.outer_ipv4.ecn == ECN_CAPABLE_1   \
            ? hdr.outer_ipv4.ecn : inside))

    action unwrap() {
        bit<2> ecn4 = COMBINED_ECN(hdr.ipv4.ecn);
        bit<2> ecn6 = COMBINED_ECN(hdr.ipv6.ecn);
        hdr.ipv4.ecn = ecn4;
        hdr.ipv6.ecn = ecn6;
        hdr.ipv4.dscp = hdr.outer_ipv4.dscp;
        hdr.ipv6.dscp = hdr.outer_ipv4.dscp;
        hdr.outer_ethernet.setInvalid();
        hdr.outer_ipv4.setInvalid();
        hdr.outer_udp.setInvalid();
        hdr.vxlan.setInvalid();
    }

    apply {
        bit<2> ecn = hdr.ipv4.isValid() ? hdr.ipv4.ecn : hdr.ipv6.ecn;
        meta.tenancy = true;
        meta.is_from_tunnel = true;
        vnis.apply();
        if (meta.drop_reason != drop_reason_t.UNKNOWN_VNI) {
            vteps.apply();
        }
        if (hdr.vxlan.flags & VXLAN_HAS_VNI == 0 ||
                (hdr.outer_ipv4.ecn == ECN_CONGESTED && ecn == ECN_NOT_CAPABLE)) {
            meta.drop_reason = drop_reason_t.BAD_TUNNEL;    // a mark its sender would never hear of
        }
        unwrap();
    }
}

// --- where to -----------------------------------------------------------------------------------

control vxlan_route(in headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    // gateway: the MAC to which is sent what is to be routed; mac: whose port it is.
    action attach(tenant_net_t routed_net, tenant_net_t bridged_net, mac_t gateway, mac_t mac) {
        meta.is_bridged = hdr.ethernet.dst_addr != gateway;
        meta.net = meta.is_bridged ? bridged_net : routed_net;
        meta.drop_reason = hdr.ethernet.src_addr == mac ? drop_reason_t.NONE
                                                        : drop_reason_t.FOREIGN_MAC;
        meta.tenancy = true;
    }

    table tenant_ports {
        key = { standard_metadata.ingress_port : exact; }
        actions = { attach; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    action to_tenant_host(port_t port, mac_t next_mac) {
        meta.out_port = port;
        meta.next_mac = next_mac;
    }

    // To the leaf whose address is `vtep`; routed frames are sent to its MAC.
    action to_tenant_leaf(ipv4_addr_t vtep, bit<24> vni, mac_t leaf_mac) {
        meta.vtep = vtep;
        meta.vni = vni;
        meta.leaf_mac = leaf_mac;
    }

    action no_way() {
        meta.drop_reason = drop_reason_t.NO_ROUTE;
    }

    table tenant_routes {
        key = {
            meta.net          : exact;
            hdr.ipv4.dst_addr : lpm;
        }
        actions = { to_tenant_host; to_tenant_leaf; no_way; }
        default_action = no_way();
        size = HOSTS;
    }

    action bridge_to_port(port_t port) {
        meta.out_port = port;
    }

    action bridge_to_leaf(ipv4_addr_t vtep, bit<24> vni) {
        meta.vtep = vtep;
        meta.vni = vni;
    }

    table tenant_macs {
        key = {
            meta.net              : exact;
            hdr.ethernet.dst_addr : exact @name("dst_mac");
        }
        actions = { bridge_to_port; bridge_to_leaf; NoAction; }
        default_action = NoAction();
        size = HOSTS;
    }

    action go_on(bit<16> next) {
        meta.is_flooded = true;
        meta.flood_step = next;
        meta.priority = 0;
        standard_metadata.priority = 0;
    }

    // `next` is the step after this one; 0: it is the last.
    action flood_to_port(port_t port, bit<16> next) {
        meta.out_port = port;
        go_on(next);
    }

    action flood_to_leaf(ipv4_addr_t vtep, bit<24> vni, bit<16> next) {
        bridge_to_leaf(vtep, vni);
        go_on(next);
    }

    // What came from another leaf is flooded to this one's ports only.
    table floods {
        key = {
            meta.net            : exact;
            meta.is_from_tunnel : exact;
            meta.flood_step     : exact;
        }
        actions = { flood_to_port; flood_to_leaf; no_way; }
        default_action = no_way();
        size = FLOODS;
    }

    action underlay_port(port_t port, mac_t next_mac) {
        meta.out_port = port;
        meta.next_mac = next_mac;
    }

    action underlay_group(group_t group, leaf_t leaf) {
        meta.group = group;
        meta.far_leaf = leaf;
    }

    // The ways to other leaves, as route.p4 has them.
    table vtep_routes {
        key = { meta.vtep : exact; }
        actions = { underlay_port; underlay_group; no_way; }
        default_action = no_way();
        size = LEAVES;
    }

    apply {
        if (!meta.is_from_tunnel) {
            tenant_ports.apply();
        } else if (meta.drop_reason == drop_reason_t.NOT_IP) {
            meta.drop_reason = drop_reason_t.NONE;
        }
        if (meta.tenancy && meta.drop_reason == drop_reason_t.NONE) {
            if (!meta.is_bridged) {
                if (hdr.ipv4.isValid()) {
                    tenant_routes.apply();
                } else {
                    meta.drop_reason = drop_reason_t.NOT_IP;
                }
            } else if (!tenant_macs.apply().hit) {
                floods.apply();
                if (meta.is_flooded && meta.flood_step != 0) {
                    meta.copy_purpose = copy_t.FLOOD;
                    meta.copy_session = SESSION_OF(standard_metadata.ingress_port);
                }
            }
            if (meta.vtep != 0) {
                if (meta.is_from_tunnel) {
                    meta.drop_reason = drop_reason_t.NO_ROUTE;
                } else {
                    vtep_routes.apply();
                }
            } else if (!meta.is_from_tunnel && meta.is_bridged &&
                       meta.out_port == standard_metadata.ingress_port) {
                meta.drop_reason = meta.is_flooded ? drop_reason_t.FOR_TUNNEL
                                                   : drop_reason_t.NO_ROUTE;
            }
        }
    }
}

// --- the beginning ------------------------------------------------------------------------------

control vxlan_depart(inout headers_t hdr, in metadata_t meta,
                     in standard_metadata_t standard_metadata) {
    flow_hash() hashing;

    bit<32> flow = 0;

    action encapsulate(ipv4_addr_t address, mac_t mac) {
        bit<16> length = (bit<16>)standard_metadata.packet_length;
        hdr.outer_ethernet.setValid();
        hdr.outer_ethernet.dst_addr = meta.next_mac;
        hdr.outer_ethernet.src_addr = mac;
        hdr.outer_ethernet.ether_type = ETHERTYPE_IPV4;
        hdr.outer_ipv4.setValid();
        hdr.outer_ipv4.version = 4;
        hdr.outer_ipv4.ihl = 5;
        hdr.outer_ipv4.dscp = 0;
        hdr.outer_ipv4.ecn = 0;
        hdr.outer_ipv4.total_len = length + IPV4_BYTES + UDP_BYTES + VXLAN_BYTES;
        hdr.outer_ipv4.identification = 0;
        hdr.outer_ipv4.flags = 2;
        hdr.outer_ipv4.frag_offset = 0;
        hdr.outer_ipv4.ttl = 64;
        hdr.outer_ipv4.protocol = PROTOCOL_UDP;
        hdr.outer_ipv4.src_addr = address;
        hdr.outer_ipv4.dst_addr = meta.vtep;
        hdr.outer_udp.setValid();
        hdr.outer_udp.src_port = 2w3 ++ flow[29:16];
        hdr.outer_udp.dst_port = UDP_PORT_VXLAN;
        hdr.outer_udp.length = length + UDP_BYTES + VXLAN_BYTES;
        hdr.outer_udp.checksum = 0;
        hdr.vxlan.setValid();
        hdr.vxlan.flags = VXLAN_HAS_VNI;
        hdr.vxlan.reserved = 0;
        hdr.vxlan.vni = meta.vni;
        hdr.vxlan.reserved2 = 0;
        hdr.ethernet.src_addr = meta.is_bridged ? hdr.ethernet.src_addr : mac;
        hdr.ethernet.dst_addr = meta.is_bridged ? hdr.ethernet.dst_addr : meta.leaf_mac;
    }

    // This leaf's own address and MAC.
    table own_vtep {
        actions = { encapsulate; NoAction; }
        default_action = NoAction();
    }

    apply {
        if (hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
            hashing.apply(hdr, meta, flow);
        }
        own_vtep.apply();
        if (!meta.is_flooded) {
            if (hdr.ipv4.isValid()) {
                hdr.outer_ipv4.dscp = hdr.ipv4.dscp;
                hdr.outer_ipv4.ecn = hdr.ipv4.ecn;
            } else if (hdr.ipv6.isValid()) {
                hdr.outer_ipv4.dscp = hdr.ipv6.dscp;
                hdr.outer_ipv4.ecn = hdr.ipv6.ecn;
            }
        }
    }
}

// --- copies ---------------------------------------------------------------------------------------

// What becomes of a copy begins with the frame itself, whatever it travels in.
control vxlan_inside(inout headers_t hdr) {
    apply {
        hdr.outer_ethernet.setInvalid();
        hdr.outer_ipv4.setInvalid();
        hdr.outer_udp.setInvalid();
        hdr.vxlan.setInvalid();
    }
}

#endif
