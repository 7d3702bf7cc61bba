// Mark: ECN, at departure, by the length of the queue the packet waited in.
//
// Between Kmin and Kmax the share of marked packets grows from 0 to Pmax; above Kmax all are
// marked; if Kmin is Kmax, that is a step. Only packets whose sender understands it (ECN-capable)
// are marked. To one that does not, a profile may say that it is dropped instead, which is what
// congestion means to its sender (WRED): here, as the others are marked, at departure; it took room
// in the buffer until now, but takes no time of the link.
//
// Reads:  the port, meta.priority, meta.out_used (the queue, this packet included), ECN in the IP
//         header or hdr.sunh.
// Writes: ECN in the IP header or hdr.sunh, in hdr.outer_ipv4 of a tunnel too; the counter of marked
//         packets; meta.drop_reason; what notify.p4 writes, to which a mark that is due goes first.

#ifndef MARK_P4
#define MARK_P4

#include "headers.p4"
#include "sizes.p4"
#include "notify.p4"

control mark(inout headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    counter(PORTS, CounterType.packets) marked;
    notify_ask() sender;

    bytes_t  kmin = 0;
    bytes_t  kmax = 0;
    chance_t slope = 0;
    bool     drops = false;

    // gradient: Pmax / (Kmax - Kmin), in 2^-32 per byte.
    action between(bytes_t queue_min, bytes_t queue_max, bit<32> gradient) {
        kmin = queue_min;
        kmax = queue_max;
        slope = gradient;
    }

    action between_or_drop(bytes_t queue_min, bytes_t queue_max, bit<32> gradient) {
        kmin = queue_min;
        kmax = queue_max;
        slope = gradient;
        drops = true;
    }

    table ecn_profiles {
        key = {
            standard_metadata.egress_port : exact;
            meta.priority                 : exact;
        }
        actions = { between; between_or_drop; NoAction; }
        default_action = NoAction();
        size = QUEUES;
    }

    apply {
        bit<2> ecn = hdr.ipv4.ecn;
        if (hdr.ipv6.isValid()) {
            ecn = hdr.ipv6.ecn;
        }
        if (hdr.carrier.isValid()) {
            ecn = hdr.carrier.ecn;
        }
        if (hdr.sunh.isValid()) {
            ecn = hdr.sunh.ecn;
        }
        if (ecn != ECN_CONGESTED && ecn_profiles.apply().hit && meta.out_used > kmin &&
                (ecn != ECN_NOT_CAPABLE || drops)) {
            chance_t chance = meta.out_used >= kmax ? 0xFFFFFFFF
                                                    : (meta.out_used - kmin) * slope;
            chance_t draw;
            random(draw, 0, 0xFFFFFFFE);
            if (draw < chance) {
                bool is_told = false;      // its sender, by a notification
                if (ecn != ECN_NOT_CAPABLE) {
                    sender.apply(hdr, meta, standard_metadata, is_told);
                }
                if (ecn != ECN_NOT_CAPABLE && !is_told) {
                    if (hdr.carrier.isValid()) {
                        hdr.carrier.ecn = ECN_CONGESTED;
                    } else if (hdr.ipv6.isValid()) {
                        hdr.ipv6.ecn = ECN_CONGESTED;
                    } else if (hdr.sunh.isValid()) {
                        hdr.sunh.ecn = ECN_CONGESTED;
                    } else {
                        hdr.ipv4.ecn = ECN_CONGESTED;
                    }
                    hdr.outer_ipv4.ecn = ECN_CONGESTED;    // of a tunnel that begins here
                    marked.count((bit<32>)standard_metadata.egress_port);
                } else if (ecn == ECN_NOT_CAPABLE && meta.drop_reason == drop_reason_t.NONE) {
                    meta.drop_reason = drop_reason_t.EARLY_DROP;
                }
            }
        }
    }
}

#endif
