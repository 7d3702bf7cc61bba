// Parse: Ethernet, one 802.1Q tag, one of CSIG, IPv4 without options or IPv6 without extension
// headers (but for hop-by-hop options of multicast, and IOAM's), perhaps in a carrier of
// micro-segments, UDP, telemetry; or SUNH in place of all behind Ethernet. What else follows travels
// as payload.
//
// Reads:  the frame, and the packet's kind: whether the switch made it itself. The checks of what
//         is deparsed look at hdr.int_*, hdr.ioam*, hdr.notice and hdr.report*.
// Writes: hdr, meta.src_port, meta.dst_port; a frame too short for its headers, or an IP header with
//         options, extension headers or of another version, leaves a parser error, which fabric.p4
//         turns into a counted drop.

#ifndef PARSER_P4
#define PARSER_P4

#include "headers.p4"
#include "timers.p4"

error {
    NotVersion4, Ipv4WithOptions, NotVersion6, Ipv6WithExtensions, BadSegmentRouting, BadTunnel,
    BadTrace
}

parser fabric_parser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.instance_type) {
            PACKET_TIMER: parse_timer;
            PACKET_RESUBMITTED: parse_tunnel;
            default: parse_ethernet;
        }
    }

    // What goes round is taken apart from within its tunnel (vxlan.p4).
    state parse_tunnel {
        packet.extract(hdr.outer_ethernet);
        packet.extract(hdr.outer_ipv4);
        packet.extract(hdr.outer_udp);
        packet.extract(hdr.vxlan);
        verify(hdr.outer_ethernet.ether_type == ETHERTYPE_IPV4, error.BadTunnel);
        transition parse_ethernet;
    }

    state parse_timer {
        packet.extract(hdr.timer);
        transition accept;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            ETHERTYPE_CONGA: parse_conga;
            ETHERTYPE_VLAN: parse_vlan;
            ETHERTYPE_CSIG: parse_csig;
            ETHERTYPE_CSIG_WIDE: parse_csig_wide;
            ETHERTYPE_SUNH: parse_sunh;
            ETHERTYPE_NOTICE: parse_notice;
            ETHERTYPE_MAC_CONTROL: parse_mac_control;
            default: accept;
        }
    }

    state parse_sunh {
        packet.extract(hdr.sunh);
        transition accept;
    }

    // From outside it is nothing that is known.
    state parse_notice {
        transition select(standard_metadata.instance_type, packet.lookahead<bit<4>>()) {
            (PACKET_RECIRCULATED, 4): parse_notice_ipv4;
            (PACKET_RECIRCULATED, 6): parse_notice_ipv6;
            default: accept;
        }
    }

    state parse_notice_ipv4 {
        packet.extract(hdr.ipv4);
        transition parse_notice_transport;
    }

    state parse_notice_ipv6 {
        packet.extract(hdr.ipv6);
        transition parse_notice_transport;
    }

    state parse_notice_transport {
        packet.extract(hdr.udp);
        packet.extract(hdr.bth);
        meta.src_port = hdr.udp.src_port;
        transition accept;
    }

    state parse_mac_control {
        transition select(packet.lookahead<bit<16>>()) {
            OPCODE_PFC: parse_pfc;
            OPCODE_EXTENSION: parse_extension;
            default: accept;
        }
    }

    state parse_extension {
        transition select(packet.lookahead<bit<40>>()[23:0]) {
            CREDIT_OUI: parse_credit;
            default: accept;
        }
    }

    state parse_credit {
        packet.extract(hdr.credit);
        transition accept;
    }

    state parse_pfc {
        packet.extract(hdr.pfc);
        transition accept;
    }

    state parse_conga {
        packet.extract(hdr.conga);
        transition select(hdr.conga.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            ETHERTYPE_VLAN: parse_vlan;
            ETHERTYPE_CSIG: parse_csig;
            ETHERTYPE_CSIG_WIDE: parse_csig_wide;
            default: accept;
        }
    }

    state parse_vlan {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            ETHERTYPE_CSIG: parse_csig;
            ETHERTYPE_CSIG_WIDE: parse_csig_wide;
            default: accept;
        }
    }

    state parse_csig {
        packet.extract(hdr.csig);
        transition select(hdr.csig.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }

    state parse_csig_wide {
        packet.extract(hdr.csig_wide);
        transition select(hdr.csig_wide.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4, error.NotVersion4);
        verify(hdr.ipv4.ihl == 5, error.Ipv4WithOptions);
        transition select(hdr.ipv4.flags, hdr.ipv4.frag_offset, hdr.ipv4.protocol) {
            (0 &&& 1, 0, PROTOCOL_UDP): parse_udp;
            (1 &&& 1, 0, PROTOCOL_UDP): parse_first_fragment;
            default: accept;
        }
    }

    // Its ports are for permit.p4 alone, and no header is put in or taken off after them.
    state parse_first_fragment {
        bit<32> ports = packet.lookahead<bit<32>>();
        meta.src_port = ports[31:16];
        meta.dst_port = ports[15:0];
        transition accept;
    }

    // The next header stands in the seventh byte.
    state parse_ipv6 {
        transition select(packet.lookahead<bit<56>>()[7:0]) {
            PROTOCOL_IPV4: parse_carrier;
            PROTOCOL_IPV6: parse_carrier;
            EXTENSION_ROUTING: parse_carrier;
            EXTENSION_HOP_BY_HOP: parse_options;
            default: parse_plain_ipv6;
        }
    }

    // The destination begins with the 25th byte.
    state parse_options {
        transition select(packet.lookahead<bit<200>>()[7:0]) {
            IPV6_MULTICAST: parse_multicast;
            default: parse_ioam;
        }
    }

    // It stays on its link and so is no way past a rule: that is how neighbours say which groups they
    // listen to (MLD).
    state parse_multicast {
        packet.extract(hdr.ipv6);
        verify(hdr.ipv6.version == 6, error.NotVersion6);
        transition accept;
    }

    // A trace alone, or it is an extension that a rule could be passed behind.
    state parse_ioam {
        packet.extract(hdr.ioam_ipv6);
        packet.extract(hdr.ioam);
        verify(hdr.ioam_ipv6.version == 6, error.NotVersion6);
        verify(hdr.ioam.padding == PADDING_OF_2 && hdr.ioam.option == OPTION_IOAM &&
               hdr.ioam.kind == 0, error.Ipv6WithExtensions);
        bit<16> option_end = (bit<16>)hdr.ioam.option_length + 6;
        verify(IOAM_BYTES + ((bit<16>)hdr.ioam.words_left << 2) <= option_end &&
               option_end <= ((bit<16>)hdr.ioam.length + 1) << 3, error.BadTrace);
        transition select(hdr.ioam.words_left |-| (bit<7>)hdr.ioam.node_words,
                          hdr.ioam.words_left == (bit<7>)hdr.ioam.node_words) {
            (0, false): parse_ioam_full;
            default: parse_ioam_slot;
        }
    }

    state parse_ioam_full {
        packet.extract(hdr.ioam_free, (bit<32>)hdr.ioam.words_left << 5);
        transition parse_ioam_done;
    }

    state parse_ioam_slot {
        packet.extract(hdr.ioam_free,
                       (bit<32>)(hdr.ioam.words_left - (bit<7>)hdr.ioam.node_words) << 5);
        packet.extract(hdr.ioam_slot, (bit<32>)hdr.ioam.node_words << 5);
        transition parse_ioam_done;
    }

    state parse_ioam_done {
        packet.extract(hdr.ioam_done, (((bit<32>)hdr.ioam.length << 6) - 64) -
                                      ((bit<32>)hdr.ioam.words_left << 5));
        transition select(hdr.ioam.next_header) {
            PROTOCOL_IPV4: parse_ipv4;
            PROTOCOL_IPV6: parse_plain_ipv6;
            default: refuse_extension;
        }
    }

    state parse_carrier {
        packet.extract(hdr.carrier);
        verify(hdr.carrier.version == 6, error.NotVersion6);
        transition select(hdr.carrier.next_header) {
            PROTOCOL_IPV4: parse_ipv4;
            PROTOCOL_IPV6: parse_plain_ipv6;
            default: parse_segment_routing;
        }
    }

    state parse_segment_routing {
        packet.extract(hdr.srh);
        verify(hdr.srh.routing_type == 4 && hdr.srh.length == (hdr.srh.last_entry + 1) << 1,
               error.BadSegmentRouting);
        transition select(hdr.srh.last_entry) {
            0: parse_last_segment;
            1: parse_segment_before;
            2: parse_first_segment;
            default: refuse_segments;
        }
    }

    state refuse_segments {
        verify(false, error.BadSegmentRouting);
        transition accept;
    }

    state parse_first_segment {
        packet.extract(hdr.segments.next);
        transition parse_segment_before;
    }

    state parse_segment_before {
        packet.extract(hdr.segments.next);
        transition parse_last_segment;
    }

    state parse_last_segment {
        packet.extract(hdr.segments.next);
        transition select(hdr.srh.next_header) {
            PROTOCOL_IPV4: parse_ipv4;
            PROTOCOL_IPV6: parse_plain_ipv6;
            default: refuse_segments;
        }
    }

    state parse_plain_ipv6 {
        packet.extract(hdr.ipv6);
        verify(hdr.ipv6.version == 6, error.NotVersion6);
        transition select(hdr.ipv6.next_header) {
            PROTOCOL_UDP: parse_udp;
            // A rule on ports could be passed behind any of these.
            EXTENSION_HOP_BY_HOP: refuse_extension;
            EXTENSION_ROUTING: refuse_extension;
            EXTENSION_FRAGMENT: refuse_extension;
            EXTENSION_AUTHENTICATION: refuse_extension;
            EXTENSION_DESTINATION: refuse_extension;
            EXTENSION_MOBILITY: refuse_extension;
            default: accept;
        }
    }

    state refuse_extension {
        verify(false, error.Ipv6WithExtensions);
        transition accept;
    }

    state parse_udp {
        packet.extract(hdr.udp);
        meta.src_port = hdr.udp.src_port;
        meta.dst_port = hdr.udp.dst_port;
        transition select(hdr.udp.dst_port) {
            UDP_PORT_INT: parse_int_type;
#ifdef INC
            UDP_PORT_INC: parse_inc;
#endif
            default: accept;
        }
    }

#ifdef INC
    state parse_inc {
        packet.extract(hdr.inc);
        transition select(hdr.inc.flags) {
            INC_WITH_DATA: parse_vector;
            default: accept;
        }
    }

    state parse_vector {
        packet.extract(hdr.vector);
        transition accept;
    }
#endif

    // Type 1 and npt 1, or it is somebody else's port.
    state parse_int_type {
        transition select(packet.lookahead<bit<6>>()) {
            0b000101: parse_int_head;
            default: accept;
        }
    }

    state parse_int_head {
        packet.extract(hdr.int_head);
        meta.dst_port = hdr.int_head.original_port;
        // A longer stack can be added to all the same, but no sink here can take it off.
        transition select(hdr.int_head.length) {
            0 &&& 0xC0: parse_int_stack;
            default: accept;
        }
    }

    state parse_int_stack {
        packet.extract(hdr.int_stack, (bit<32>)(hdr.int_head.length - 3) << 5);
        transition accept;
    }
}

control fabric_deparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.outer_ethernet);
        packet.emit(hdr.outer_ipv4);
        packet.emit(hdr.outer_udp);
        packet.emit(hdr.vxlan);
        packet.emit(hdr.report);
        packet.emit(hdr.report_hop);
        packet.emit(hdr.report_drop);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.pfc);
        packet.emit(hdr.credit);
        packet.emit(hdr.conga);
        packet.emit(hdr.vlan);
        packet.emit(hdr.csig);
        packet.emit(hdr.csig_wide);
        packet.emit(hdr.ioam_ipv6);
        packet.emit(hdr.ioam);
        packet.emit(hdr.ioam_free);
        packet.emit(hdr.ioam_room8);
        packet.emit(hdr.ioam_room16);
        packet.emit(hdr.ioam_room32);
        packet.emit(hdr.ioam_room64);
        packet.emit(hdr.ioam_room128);
        packet.emit(hdr.ioam_slot);
        packet.emit(hdr.ioam_node);
        packet.emit(hdr.ioam_ports);
        packet.emit(hdr.ioam_seconds);
        packet.emit(hdr.ioam_fraction);
        packet.emit(hdr.ioam_delay);
        packet.emit(hdr.ioam_load);
        packet.emit(hdr.ioam_queue);
        packet.emit(hdr.ioam_complement);
        packet.emit(hdr.ioam_node_wide);
        packet.emit(hdr.ioam_ports_wide);
        packet.emit(hdr.ioam_data_wide);
        packet.emit(hdr.ioam_buffer);
        packet.emit(hdr.ioam_done);
        packet.emit(hdr.carrier);
        packet.emit(hdr.srh);
        packet.emit(hdr.segments);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.sunh);
        packet.emit(hdr.udp);
        packet.emit(hdr.int_head);
        packet.emit(hdr.int_node);
        packet.emit(hdr.int_ports);
        packet.emit(hdr.int_latency);
        packet.emit(hdr.int_queue);
        packet.emit(hdr.int_ingress_time);
        packet.emit(hdr.int_egress_time);
        packet.emit(hdr.int_ports2);
        packet.emit(hdr.int_load);
        packet.emit(hdr.int_buffer);
        packet.emit(hdr.int_none);
        packet.emit(hdr.int_rate);
        packet.emit(hdr.int_left);
        packet.emit(hdr.int_sent);
        packet.emit(hdr.int_stack);
        packet.emit(hdr.bth);
        packet.emit(hdr.notice);
#ifdef INC
        packet.emit(hdr.inc);
        packet.emit(hdr.vector);
#endif
    }
}

#endif
