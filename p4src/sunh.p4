// SUNH: a network header of 8 bytes in place of IP's 20, for a domain of a few racks (docs/scale-up.md).
//
// Addresses have 16 bits: the lower halves of the hosts' IPv4 addresses. At a port towards a host a packet
// has to come from that host. Where it goes is looked up by its destination; of a group any port will do,
// which path.p4 picks by the flow label. forward.p4 counts hops down, mark.p4 marks, both as for IP.
//
// Reads:  hdr.sunh, the ingress port.
// Writes: meta.out_port and meta.next_mac (one port), or meta.group and meta.far_leaf (a group); or
//         meta.drop_reason.
// Stops:  tenants, access lists, telemetry and micro-segments look at IP alone.

#ifndef SUNH_P4
#define SUNH_P4

#include "headers.p4"
#include "sizes.p4"

control sunh(in headers_t hdr, inout metadata_t meta, in standard_metadata_t standard_metadata) {
    action from_address(bit<16> address) {
        meta.drop_reason = hdr.sunh.src_addr == address ? drop_reason_t.NONE
                                                        : drop_reason_t.FORGED_SOURCE;
    }

    table sunh_hosts {
        key = { standard_metadata.ingress_port : exact; }
        actions = { from_address; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    action sunh_port(port_t port, mac_t next_mac) {
        meta.out_port = port;
        meta.next_mac = next_mac;
    }

    action sunh_group(group_t group, leaf_t leaf) {
        meta.group = group;
        meta.far_leaf = leaf;
    }

    action sunh_nowhere() {
        meta.drop_reason = drop_reason_t.NO_ROUTE;
    }

    table sunh_routes {
        key = { hdr.sunh.dst_addr : lpm; }
        actions = { sunh_port; sunh_group; sunh_nowhere; }
        default_action = sunh_nowhere();
        size = ROUTES;
    }

    apply {
        sunh_hosts.apply();
        if (meta.drop_reason == drop_reason_t.NONE) {
            sunh_routes.apply();
        }
    }
}

#endif
