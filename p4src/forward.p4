// Forward: a router's duties on a packet whose next hop is known.
//
// What a tenant's hosts say to each other by their MACs (vxlan.p4) passes as it is.
//
// Reads:  meta.out_port, meta.next_mac, meta.group, meta.is_bridged, port_down.
// Writes: the MAC addresses, meta.next_mac, the TTL or hop limit of the IP header or hdr.sunh,
//         standard_metadata.egress_spec; meta.drop_reason when the TTL runs out here or the port is
//         dead.

#ifndef FORWARD_P4
#define FORWARD_P4

#include "headers.p4"
#include "ports.p4"

control forward(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    action neighbour(mac_t mac) {
        meta.next_mac = mac;
    }

    action no_neighbour() {
        meta.drop_reason = drop_reason_t.NO_NEXT_HOP;
    }

    // Who is at the other end of a port. Hosts are not here: their routes name them.
    table neighbours {
        key = { meta.out_port : exact; }
        actions = { neighbour; no_neighbour; }
        default_action = no_neighbour();
        size = PORTS;
    }

    apply {
        if (meta.group != 0) {
            neighbours.apply();
        }
        bit<1> down;
        port_down.read(down, (bit<32>)meta.out_port);
        if (down == 1) {
            meta.drop_reason = drop_reason_t.PORT_DOWN;
            return;
        }
        if (meta.is_bridged) {
            standard_metadata.egress_spec = meta.out_port;
            return;
        }
        bit<8> ttl = hdr.ipv4.ttl;
        if (hdr.carrier.isValid()) {
            ttl = hdr.carrier.hop_limit;
        } else if (hdr.ipv6.isValid()) {
            ttl = hdr.ipv6.hop_limit;
        } else if (hdr.sunh.isValid()) {
            ttl = (bit<8>)hdr.sunh.hop_limit;
        }
        if (ttl <= 1) {
            meta.drop_reason = drop_reason_t.TTL_EXPIRED;
        } else {
            if (hdr.carrier.isValid()) {
                hdr.carrier.hop_limit = ttl - 1;
            } else if (hdr.ipv4.isValid()) {
                hdr.ipv4.ttl = ttl - 1;
            } else if (hdr.ipv6.isValid()) {
                hdr.ipv6.hop_limit = ttl - 1;
            } else {
                hdr.sunh.hop_limit = (bit<4>)(ttl - 1);
            }
            // The frame was sent to this switch's own address, so that is where it now comes from.
            hdr.ethernet.src_addr = hdr.ethernet.dst_addr;
            hdr.ethernet.dst_addr = meta.next_mac;
            standard_metadata.egress_spec = meta.out_port;
        }
    }
}

#endif
