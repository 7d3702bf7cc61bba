// Route: the longest prefix decides whether the packet leaves by one port, by any of a group, or is for
// the switch itself.
//
// What IPv6 means for one link only, by its source or its destination, is not routed: neighbours are
// told (forward.p4), so that nobody here answers who asks for them.
//
// Reads:  hdr.ipv4.dst_addr, hdr.ipv6.dst_addr or hdr.carrier.dst_addr; meta.is_steered.
// Writes: meta.out_port and meta.next_mac (one port), or meta.group and meta.far_leaf (a group),
//         with meta.steering (a policy) besides; or meta.drop_reason.

#ifndef ROUTE_P4
#define ROUTE_P4

#include "headers.p4"
#include "sizes.p4"

control route(in headers_t hdr, inout metadata_t meta) {
    // The destination is a host on this port, or there is only one way towards it.
    action to_port(port_t port, mac_t next_mac) {
        meta.out_port = port;
        meta.next_mac = next_mac;
    }

    // Any of the group's ports will do; path.p4 picks one. `leaf` is whose hosts they lead to.
    action to_group(group_t group, leaf_t leaf) {
        meta.group = group;
        meta.far_leaf = leaf;
    }

    // The destination is an address of this switch's own; punt.p4 takes it from here.
    action to_control() {
        meta.drop_reason = drop_reason_t.FOR_CONTROL;
    }

    // The end of a tunnel; vxlan.p4 takes it from here.
    action to_tunnel_end() {
        meta.drop_reason = drop_reason_t.FOR_TUNNEL;
    }

    // They are steered, where a policy is meant for their tenant (usid.p4); others go by the group,
    // or by the port if that is the only way.
    action to_segments(bit<16> policy, group_t group, leaf_t leaf, port_t port, mac_t next_mac) {
        meta.steering = policy;
        meta.group = group;
        meta.far_leaf = leaf;
        meta.out_port = port;
        meta.next_mac = next_mac;
    }

    action no_route() {
        meta.drop_reason = drop_reason_t.NO_ROUTE;
    }

    table ipv4_routes {
        key = { hdr.ipv4.dst_addr : lpm; }
        actions = { to_port; to_group; to_segments; to_control; to_tunnel_end; no_route; }
        default_action = no_route();
        size = ROUTES;
    }

    action link_local() {
        meta.drop_reason = drop_reason_t.LINK_LOCAL;
    }

    table ipv6_routes {
        key = { hdr.ipv6.dst_addr : lpm; }
        actions = { to_port; to_group; to_segments; no_route; }
        default_action = no_route();
        size = ROUTES;
    }

    // To other switches, for carriers.
    table sid_routes {
        key = { hdr.carrier.dst_addr : lpm; }
        actions = { to_port; to_group; no_route; }
        default_action = no_route();
        size = ROUTES;
    }

    apply {
        if (hdr.carrier.isValid()) {
            if (!meta.is_steered) {
                sid_routes.apply();
            }
        } else if (hdr.ipv4.isValid()) {
            ipv4_routes.apply();
        } else if (hdr.ipv6.src_addr[127:118] == IPV6_LINK_LOCAL ||
                   hdr.ipv6.dst_addr[127:118] == IPV6_LINK_LOCAL ||
                   hdr.ipv6.dst_addr[127:120] == IPV6_MULTICAST) {
            link_local();
        } else {
            ipv6_routes.apply();
        }
    }
}

#endif
