// Forward: a router's duties on a packet whose next hop is known.
//
// Reads:  meta.out_port, meta.next_mac.
// Writes: the MAC addresses, the TTL, standard_metadata.egress_spec; meta.drop_reason when the
//         TTL runs out here.

#ifndef FORWARD_P4
#define FORWARD_P4

#include "headers.p4"

control forward(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.ipv4.ttl <= 1) {
            meta.drop_reason = drop_reason_t.TTL_EXPIRED;
        } else {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            // The frame was sent to this switch's own address, so that is where it now comes from.
            hdr.ethernet.src_addr = hdr.ethernet.dst_addr;
            hdr.ethernet.dst_addr = meta.next_mac;
            standard_metadata.egress_spec = meta.out_port;
        }
    }
}

#endif
