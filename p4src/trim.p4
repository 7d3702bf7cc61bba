// Trim: where the buffer has no room for a packet, its headers go on alone.
//
// A packet of a class that may lose, found too much by buffer.p4 and of a DSCP that says it may be
// cut, is cut to the first bytes of its IP packet and goes on in another class and with another
// DSCP: its receiver learns at once what is missing, and so does its sender. The table is asked by
// the port it leaves by, so what was cut on the last hop can be told from what the fabric cut.
//
// What is kept goes through the buffer as well: in memory that the class of cut packets has to
// itself (reserved, as buffer.p4 calls it). Where that is full the packet is dropped as it would
// have been. A cut packet that finds no room further on ends with a reason of its own, so that
//     cut = arrived at hosts + CUT_LOST + lost by links.
//
// The IP length says what is left; UDP's stays as it was, and tells how long the packet had been.
// Telemetry on board is kept whole, and gets no further words at the switch that cuts. Whatever
// checksum or CRC closed the packet is gone with its end: nothing behind IP is checked any more.
//
// Reads:  the port, meta.out_port, meta.dscp, meta.claim, buffer_shared, and how long the packet is
//         by hdr.vlan, hdr.csig*, hdr.conga, hdr.srh, hdr.udp, hdr.ioam and
//         hdr.int_head.
// Writes: meta.drop_reason (TRIMMED: it goes on; CUT_LOST), meta.claim, meta.priority,
//         standard_metadata.priority, meta.int_order, the IP header, hdr.ioam_ipv6, buffer_in_used,
//         buffer_out_used, the counter; in a tag (hdr.csig*) that no hop is to change it.
// Stops:  classes that are paused instead. On BMv2 loads and counters of the switch that cuts
//         still count what the packet was.

#ifndef TRIM_P4
#define TRIM_P4

#include "headers.p4"
#include "sizes.p4"
#include "buffer.p4"

control trim(inout headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    // By the port they leave by and the class they had; the bytes are those they had.
    counter(QUEUES, CounterType.packets_and_bytes) trimmed;

    bit<16>    kept = 0xFFFF;
    bit<6>     dscp;
    priority_t priority;
    bytes_t    room;
    bytes_t    cell;
    bit<40>    per_cell;

    // size: of the IP packet that is left, telemetry aside; of IPv6, whose header is longer, as much
    // more. queue_reserved: what the class of cut
    // packets has to itself at a port, as in buffer_profiles.
    action cut(bit<16> size, bit<6> cut_dscp, priority_t cut_priority, bytes_t queue_reserved,
               bytes_t cell_size, bit<40> cell_reciprocal) {
        kept = size;
        dscp = cut_dscp;
        priority = cut_priority;
        room = queue_reserved;
        cell = cell_size;
        per_cell = cell_reciprocal;
    }

    action is_cut() {
        meta.drop_reason = drop_reason_t.CUT_LOST;
    }

    table trims {
        key = {
            meta.out_port : exact;
            meta.dscp     : exact;
        }
        actions = { cut; is_cut; NoAction; }
        default_action = NoAction();
        size = QUEUES;
    }

    action charge(bytes_t length) {
        bytes_t size = (bytes_t)(((bit<64>)(length + cell - 1) * (bit<64>)per_cell) >> 32) * cell;
        bit<32> in_queue = QUEUE_INDEX(standard_metadata.ingress_port, priority);
        bit<32> out_queue = QUEUE_INDEX(meta.out_port, priority);
        bytes_t in_used;
        bytes_t out_used;
        bytes_t shared;
        buffer_in_used.read(in_used, in_queue);
        buffer_out_used.read(out_used, out_queue);
        buffer_shared.read(shared, out_queue);
        bytes_t admitted = (out_used |-| shared) + size <= room ? size : 0;
        buffer_in_used.write(in_queue, in_used + admitted);
        buffer_out_used.write(out_queue, out_used + admitted);
        meta.claim.size = admitted;
        meta.claim.in_port = standard_metadata.ingress_port;
        meta.claim.congested = false;
    }

    apply {
        if (hdr.udp.isValid()) {
            trims.apply();
        }
        bit<16> total = hdr.ipv4.total_len;
        if (hdr.ipv6.isValid()) {
            total = hdr.ipv6.payload_len + IPV6_BYTES;
            kept = kept |+| (IPV6_BYTES - IPV4_BYTES);
        }
        if (total > kept) {
            bit<16> telemetry = hdr.int_head.isValid()
                ? ((bit<16>)hdr.int_head.length + 1) << 2 : 0;
            bytes_t carrier = 0;
            if (hdr.carrier.isValid()) {
                carrier = (bytes_t)IPV6_BYTES;
                if (hdr.srh.isValid()) {
                    carrier = carrier + (((bytes_t)hdr.srh.length + 1) << 3);
                }
            }
            if (hdr.ioam.isValid()) {
                carrier = (bytes_t)IPV6_BYTES + (((bytes_t)hdr.ioam.length + 1) << 3);
            }
            bytes_t before = 14 + carrier + (hdr.conga.isValid() ? (bytes_t)8 : 0) +
                (hdr.vlan.isValid() ? (bytes_t)4 : 0) +
                (hdr.csig.isValid() ? (bytes_t)4 : 0) + (hdr.csig_wide.isValid() ? (bytes_t)8 : 0);
            bit<16> left = kept + telemetry;
            if (total > left) {
                charge(before + (bytes_t)left);
                if (meta.claim.size != 0) {
                    trimmed.count(QUEUE_INDEX(meta.out_port, meta.priority));
                    meta.drop_reason = drop_reason_t.TRIMMED;
                    meta.priority = priority;
                    meta.int_order.wanted = false;
                    meta.int_order.traces = false;
                    hdr.csig.do_not_update = 1;
                    hdr.csig_wide.do_not_update = 1;
                    standard_metadata.priority = priority;
                    if (hdr.carrier.isValid()) {
                        hdr.carrier.dscp = dscp;
                        hdr.carrier.payload_len = left + (bit<16>)carrier - IPV6_BYTES;
                    }
                    hdr.ioam_ipv6.payload_len = left + (bit<16>)carrier - IPV6_BYTES;
                    if (hdr.ipv6.isValid()) {
                        hdr.ipv6.dscp = dscp;
                        hdr.ipv6.payload_len = left - IPV6_BYTES;
                    } else {
                        hdr.ipv4.dscp = dscp;
                        hdr.ipv4.total_len = left;
                    }
                    truncate(before + (bytes_t)left);
                }
            }
        }
    }
}

#endif
