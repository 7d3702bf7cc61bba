// Path choice: which of a group's equally good next hops this packet takes.
//
// ECMP: a hash of the 5-tuple, so that one flow keeps one path and is never reordered.
//
// Reads:  meta.group, meta.group_size, the 5-tuple.
// Writes: meta.member, meta.out_port, meta.next_mac, or meta.drop_reason.

#ifndef PATH_P4
#define PATH_P4

#include "headers.p4"
#include "sizes.p4"

control path(in headers_t hdr, inout metadata_t meta) {
    action next_hop(port_t port, mac_t next_mac) {
        meta.out_port = port;
        meta.next_mac = next_mac;
    }

    action no_next_hop() {
        meta.drop_reason = drop_reason_t.NO_NEXT_HOP;
    }

    table next_hops {
        key = {
            meta.group  : exact;
            meta.member : exact;
        }
        actions = { next_hop; no_next_hop; }
        default_action = no_next_hop();
        size = NEXT_HOPS;
    }

    apply {
        bit<16> src_port = 0;
        bit<16> dst_port = 0;
        if (hdr.udp.isValid()) {
            src_port = hdr.udp.src_port;
            dst_port = hdr.udp.dst_port;
        }
        hash(meta.member, HashAlgorithm.crc32, 16w0,
             { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, src_port, dst_port },
             meta.group_size);
        next_hops.apply();
    }
}

#endif
