// Report: telemetry reports v2.0, to the collector.
//
// Two kinds. What a sink takes off a packet: the report names the sink's own hop, and the packet
// inside it is as it came, with the words of the hops before. A packet's end, for the reasons a
// table names: where, when and why, and the packet. Either way no more than the first bytes of the
// packet are kept.
//
// The copies that become reports are clones (fabric.p4 makes them); a pause frame that is due for
// the same packet takes precedence, because one packet makes one clone.
//
// Reads:  meta.copy_*, meta.drop_reason, hdr.kept_*.
// Writes: meta.copy_purpose and meta.copy_session of what is to be reported, standard_metadata of
//         what is not sent; hdr.outer_*, hdr.report*, and hdr.udp and the IP header inside; in clones
//         of sinks hdr.int_* or hdr.ioam* with EtherTypes before them (hdr.ethernet, hdr.conga,
//         hdr.vlan, hdr.csig*), as they were.
// Stops:  the report leaves by the port of clone session SESSION_REPORTS and is from there on a
//         packet like any other.

#ifndef REPORT_P4
#define REPORT_P4

#include "headers.p4"
#include "sizes.p4"

const bit<16> REPORT_INNER_BYTES = 320;     // of the packet, at most: headers, telemetry, BTH, RETH

register<bit<32>>(1) report_sequence;

// What clones are told of the packet they come from.
#define NOTE_FOR_COPY(from_port, to_port)                                   \
    meta.copy_priority = meta.priority;                                     \
    meta.copy_reason = meta.drop_reason;                                    \
    meta.copy_in_port = from_port;                                          \
    meta.copy_out_port = to_port;                                           \
    meta.copy_length = (bit<16>)standard_metadata.packet_length;            \
    meta.copy_time = standard_metadata.ingress_global_timestamp;

// What a sink says of its own hop.
#define NOTE_HOP                                                                                \
    hdr.kept_hop.setValid();                                                                    \
    hdr.kept_hop.ingress_port = (bit<16>)standard_metadata.ingress_port;                        \
    hdr.kept_hop.egress_port = (bit<16>)standard_metadata.egress_port;                          \
    hdr.kept_hop.latency = (bit<32>)(standard_metadata.egress_global_timestamp -                \
                                     standard_metadata.ingress_global_timestamp);               \
    hdr.kept_hop.queue = (bit<8>)meta.priority;                                                 \
    hdr.kept_hop.occupancy = BYTES24(meta.out_used);                                            \
    hdr.kept_hop.ingress_time = (bit<64>)standard_metadata.ingress_global_timestamp;            \
    hdr.kept_hop.egress_time = (bit<64>)standard_metadata.egress_global_timestamp;              \
    hdr.kept_hop.utilisation = meta.utilisation;

// --- ingress or egress: should this packet's end be told? ----------------------------------------

control report_drop(inout metadata_t meta) {
    action tell(chance_t share) {
        chance_t draw;
        random(draw, 0, 0xFFFFFFFE);
        meta.copy_purpose = draw < share ? copy_t.DROP_REPORT : meta.copy_purpose;
        meta.copy_session = SESSION_REPORTS;
    }

    table drop_reports {
        key = { meta.drop_reason : exact; }
        actions = { tell; NoAction; }
        default_action = NoAction();
        size = DROP_REASONS;
    }

    apply {
        if (meta.copy_purpose != copy_t.PAUSE && meta.copy_purpose != copy_t.CREDIT &&
                meta.copy_purpose != copy_t.FLOOD) {
            drop_reports.apply();
        }
    }
}

// --- egress: what leaves as a report -------------------------------------------------------------

control report(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    action to_collector(bit<32> node, mac_t src_mac, mac_t dst_mac, ipv4_addr_t src_addr,
                        ipv4_addr_t dst_addr, bit<16> dst_port) {
        hdr.outer_ethernet.setValid();
        hdr.outer_ethernet.dst_addr = dst_mac;
        hdr.outer_ethernet.src_addr = src_mac;
        hdr.outer_ethernet.ether_type = ETHERTYPE_IPV4;
        hdr.outer_ipv4.setValid();
        hdr.outer_ipv4.version = 4;
        hdr.outer_ipv4.ihl = 5;
        hdr.outer_ipv4.dscp = 0;
        hdr.outer_ipv4.ecn = 0;
        hdr.outer_ipv4.identification = 0;
        hdr.outer_ipv4.flags = 2;
        hdr.outer_ipv4.frag_offset = 0;
        hdr.outer_ipv4.ttl = 64;
        hdr.outer_ipv4.protocol = PROTOCOL_UDP;
        hdr.outer_ipv4.src_addr = src_addr;
        hdr.outer_ipv4.dst_addr = dst_addr;
        hdr.outer_udp.setValid();
        hdr.outer_udp.src_port = dst_port;
        hdr.outer_udp.dst_port = dst_port;
        hdr.outer_udp.checksum = 0;
        hdr.report.setValid();
        hdr.report.version = 2;
        hdr.report.hardware = 0;
        hdr.report.node = node;
        hdr.report.type = 1;
        hdr.report.inner_type = 3;
        hdr.report.congested_queue = 0;
        hdr.report.intermediate = 0;
        hdr.report.reserved = 0;
        hdr.report.domain = 0;
        hdr.report.domain_bits = 0;
        hdr.report.domain_status = 0;
    }

    table collectors {
        actions = { to_collector; NoAction; }
        default_action = NoAction();
    }

    action number() {
        bit<32> sequence;
        report_sequence.read(sequence, 0);
        hdr.report.sequence = (bit<22>)sequence;
        report_sequence.write(0, sequence + 1);
    }

    // The packet as it came: the way it was taken apart, backwards.
    action as_it_came() {
        bit<16> removed = ((bit<16>)hdr.kept_int_head.length + 1) << 2;
        hdr.int_head = hdr.kept_int_head;
        hdr.int_stack = hdr.kept_int_stack;
        hdr.udp.dst_port = UDP_PORT_INT;
        LENGTHEN(removed)
    }

    action as_traced() {
        hdr.ioam_ipv6 = hdr.kept_ioam_ipv6;
        hdr.ioam = hdr.kept_ioam;
        hdr.ioam_free = hdr.kept_ioam_free;
        hdr.ioam_slot = hdr.kept_ioam_slot;
        hdr.ioam_done = hdr.kept_ioam_done;
    }

    action hop_metadata(bit<16> domain) {
        hdr.report_hop = hdr.kept_hop;
        hdr.report.metadata_bits = 0x7D00;    // ports, latency, queue, both times, utilisation
        hdr.report.metadata_length = 8;
        hdr.report.dropped = 0;
        hdr.report.tracked_flow = 1;
        hdr.report.domain = domain;
    }

    action drop_metadata() {
        hdr.report_drop.setValid();
        hdr.report_drop.ingress_port = (bit<16>)meta.copy_in_port;
        hdr.report_drop.egress_port = (bit<16>)meta.copy_out_port;
        hdr.report_drop.ingress_time = (bit<64>)meta.copy_time;
        hdr.report_drop.queue = (bit<8>)meta.copy_priority;
        hdr.report_drop.reason = meta.copy_reason;
        hdr.report_drop.reserved = 0;
        hdr.report.metadata_bits = 0x4801;    // ports, ingress time, queue and drop reason
        hdr.report.metadata_length = 4;
        hdr.report.dropped = 1;
        hdr.report.tracked_flow = 0;
    }

    bit<16> inner_bytes;

    action count_bytes() {
        inner_bytes = meta.copy_length < REPORT_INNER_BYTES ? meta.copy_length
                                                            : REPORT_INNER_BYTES;
        bit<16> metadata_bytes = (bit<16>)hdr.report.metadata_length << 2;
        hdr.report.length = (bit<8>)((8 + metadata_bytes + inner_bytes + 3) >> 2);
        hdr.outer_udp.length = 8 + 20 + metadata_bytes + inner_bytes;
        hdr.outer_ipv4.total_len = 20 + 8 + 20 + metadata_bytes + inner_bytes;
        truncate((bit<32>)(14 + 20 + 8 + 20 + metadata_bytes + inner_bytes));
    }

    apply {
        switch (collectors.apply().action_run) {
            to_collector: {
                number();
                if (meta.copy_purpose == copy_t.INT_REPORT) {
                    as_it_came();
                    hop_metadata(hdr.kept_int_head.domain);
                } else if (meta.copy_purpose == copy_t.TRACE_REPORT) {
                    as_traced();
                    if (hdr.ioam.isValid()) {
                        NAME_NETWORK(ETHERTYPE_IPV6)
                    }
                    hop_metadata(hdr.kept_ioam.namespace);
                } else {
                    drop_metadata();
                }
                count_bytes();
            }
            default: {
                mark_to_drop(standard_metadata);
            }
        }
    }
}

#endif
