// Telemetry: INT-MD v2.1, in which packets carry what every hop says of them.
//
// Source.   Marks a share of the flows a table names. On the packet's way out, UDP's destination
//           port becomes telemetry's own, and a shim that keeps the true one (npt 1), the metadata
//           header and this hop's words are put in after UDP. DSCP stays free for the priority.
// Transit.  Puts its words on top of the stack: those the instructions ask for, all ones for what
//           it cannot tell. Where they would make the packet larger than links carry it adds
//           nothing and sets the M bit; a source that has no room for the headers begins nothing.
// Sink.     Where a table says that a port leads to a host, all of it is taken off again and the
//           packet is to the byte what it would have been without; what was taken off, and this
//           hop's own words, go to the collector (report.p4).
//
// UDP's checksum is left alone on the way, and so is right again at the end.
//
// Reads:  hdr.udp, hdr.conga, hdr.int_*, meta.src_port, meta.dst_port, the clock, the ports,
//         meta.priority, meta.out_used, meta.pool_used, meta.utilisation, meta.sent_before, the packet's
//         length.
// Writes: hdr.int_*, hdr.udp, the IP header's length, meta.int_order, link_sent; at the sink
//         hdr.kept_*, meta.copy_*; meta.drop_reason.
// Stops:  a stack of more than 60 words can be added to, not taken off: it ends at the sink.

#ifndef TELEMETRY_P4
#define TELEMETRY_P4

#include "headers.p4"
#include "sizes.p4"
#include "load.p4"
#include "report.p4"

// --- ingress: is this packet to carry telemetry? -------------------------------------------------

control telemetry_order(in headers_t hdr, inout metadata_t meta,
                        in standard_metadata_t standard_metadata) {
    action watch(chance_t share, bit<16> instructions, bit<5> hop_words, bit<8> hops,
                 bit<16> domain) {
        chance_t draw;
        random(draw, 0, 0xFFFFFFFE);
        meta.int_order.wanted = draw < share;
        meta.int_order.instructions = instructions;
        meta.int_order.hop_words = hop_words;
        meta.int_order.hops = hops;
        meta.int_order.domain = domain;
    }

    // The same for IOAM; `room` is the other hops', in units of 8 bytes.
    action trace(chance_t share, bit<16> type, bit<5> node_words, bit<8> room,
                 bit<16> namespace) {
        chance_t draw;
        random(draw, 0, 0xFFFFFFFE);
        meta.int_order.traces = draw < share;
        meta.int_order.instructions = type;
        meta.int_order.hop_words = node_words;
        meta.int_order.hops = room;
        meta.int_order.domain = namespace;
    }

    table int_flows {
        key = {
            standard_metadata.ingress_port : ternary;
            hdr.ipv4.src_addr              : ternary;
            hdr.ipv4.dst_addr              : ternary;
            meta.src_port                  : ternary;
            meta.dst_port                  : ternary;
        }
        actions = { watch; trace; NoAction; }
        default_action = NoAction();
        size = INT_FLOWS;
    }

    apply {
        if (hdr.udp.isValid() && !hdr.int_head.isValid()) {
            int_flows.apply();
        }
    }
}

// --- egress: this hop's words --------------------------------------------------------------------

control telemetry_push(inout headers_t hdr, in metadata_t meta, in bit<32> node, in bit<16> room,
                       in standard_metadata_t standard_metadata) {
    bit<8> words = 0;
    bit<32> link_mbps = 0xFFFFFFFF;
    bit<32> link_left = 0xFFFFFFFF;
    bit<32> link_bytes = 0xFFFFFFFF;
    bit<16> link_number = 0;

    // A full hop has 13 words besides those of the reserved bits.
    #define EACH_NONE(X) X(6) X(5) X(4) X(3) X(2) X(1) X(0)

    action push_node() {
        hdr.int_node.setValid();
        hdr.int_node.node = node;
        words = words + 1;
    }

    action push_ports() {
        hdr.int_ports.setValid();
        hdr.int_ports.ingress = (bit<16>)standard_metadata.ingress_port;
        hdr.int_ports.egress = (bit<16>)standard_metadata.egress_port;
        words = words + 1;
    }

    action push_latency() {
        hdr.int_latency.setValid();
        hdr.int_latency.ticks = (bit<32>)(standard_metadata.egress_global_timestamp -
                                          standard_metadata.ingress_global_timestamp);
        words = words + 1;
    }

    action push_queue() {
        hdr.int_queue.setValid();
        hdr.int_queue.queue = (bit<8>)meta.priority;
        hdr.int_queue.occupancy = BYTES24(meta.out_used);
        words = words + 1;
    }

    action push_ingress_time() {
        hdr.int_ingress_time.setValid();
        hdr.int_ingress_time.ticks = (bit<64>)standard_metadata.ingress_global_timestamp;
        words = words + 2;
    }

    action push_egress_time() {
        hdr.int_egress_time.setValid();
        hdr.int_egress_time.ticks = (bit<64>)standard_metadata.egress_global_timestamp;
        words = words + 2;
    }

    action push_ports2() {
        hdr.int_ports2.setValid();
        hdr.int_ports2.ingress = 0xFFFFFFFF;
        hdr.int_ports2.egress = 0xFFFFFFFF;
        words = words + 2;
    }

    action push_load() {
        hdr.int_load.setValid();
        hdr.int_load.utilisation = meta.utilisation;
        words = words + 1;
    }

    action push_buffer() {
        hdr.int_buffer.setValid();
        hdr.int_buffer.buffer = 0;
        hdr.int_buffer.occupancy = BYTES24(meta.pool_used);
        words = words + 1;
    }

    #define PUSH_NONE(bit)                                  \
        if (hdr.int_head.instructions[bit:bit] == 1) {      \
            hdr.int_none[bit].setValid();                   \
            hdr.int_none[bit].ones = 0xFFFFFFFF;            \
            words = words + 1;                              \
        }

    // What HPCC goes by and INT-MD has no words for, our domain has: a link's rate, and by two
    // packets' times and bytes what it sent between them. That is said of one link only if both
    // took the same way, which the numbers of all its links tell in `domain_flags`, as HPCC's path ID.
    action push_rate() {
        hdr.int_rate.setValid();
        hdr.int_rate.mbps = link_mbps;
        words = words + 1;
    }

    action push_left() {
        hdr.int_left.setValid();
        hdr.int_left.ns = link_left;
        words = words + 1;
    }

    action push_sent() {
        hdr.int_sent.setValid();
        hdr.int_sent.bytes = link_bytes;
        words = words + 1;
    }

    // tick: what one lasts, in 1/65536 ns.
    action be_link(bit<32> mbps, bit<16> number, bit<64> tick) {
        bit<64> now = (bit<64>)standard_metadata.egress_global_timestamp * tick;
        link_mbps = mbps;
        link_left = now[47:16];
        link_bytes = meta.sent_before;
        link_number = number;
    }

    table int_links {
        key = { standard_metadata.egress_port : exact; }
        actions = { be_link; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    // The words that the instructions make, whoever said how many there are.
    action take_back() {
        hdr.int_node.setInvalid();
        hdr.int_ports.setInvalid();
        hdr.int_latency.setInvalid();
        hdr.int_queue.setInvalid();
        hdr.int_ingress_time.setInvalid();
        hdr.int_egress_time.setInvalid();
        hdr.int_ports2.setInvalid();
        hdr.int_load.setInvalid();
        hdr.int_buffer.setInvalid();
        hdr.int_none[0].setInvalid();
        hdr.int_none[1].setInvalid();
        hdr.int_none[2].setInvalid();
        hdr.int_none[3].setInvalid();
        hdr.int_none[4].setInvalid();
        hdr.int_none[5].setInvalid();
        hdr.int_none[6].setInvalid();
        hdr.int_rate.setInvalid();
        hdr.int_left.setInvalid();
        hdr.int_sent.setInvalid();
    }

    apply {
        if (hdr.int_head.hops_left == 0) {
            hdr.int_head.hops_exceeded = 1;
        } else if (room < (bit<16>)hdr.int_head.hop_words << 2) {
            hdr.int_head.mtu_exceeded = 1;
        } else {
            bit<16> asked = hdr.int_head.instructions;
            if (asked[15:15] == 1) { push_node(); }
            if (asked[14:14] == 1) { push_ports(); }
            if (asked[13:13] == 1) { push_latency(); }
            if (asked[12:12] == 1) { push_queue(); }
            if (asked[11:11] == 1) { push_ingress_time(); }
            if (asked[10:10] == 1) { push_egress_time(); }
            if (asked[9:9] == 1) { push_ports2(); }
            if (asked[8:8] == 1) { push_load(); }
            if (asked[7:7] == 1) { push_buffer(); }
            if (asked[6:0] != 0) { EACH_NONE(PUSH_NONE) }
            if (hdr.int_head.domain == INT_DOMAIN) {
                int_links.apply();
                bit<16> own = hdr.int_head.domain_instructions;
                if (own[15:15] == 1) { push_rate(); }
                if (own[14:14] == 1) { push_left(); }
                if (own[13:13] == 1) { push_sent(); }
            }
            if (words == (bit<8>)hdr.int_head.hop_words && words <= 255 - hdr.int_head.length) {
                bit<16> added = (bit<16>)words << 2;
                hdr.int_head.length = hdr.int_head.length + words;
                hdr.int_head.hops_left = hdr.int_head.hops_left - 1;
                hdr.int_head.domain_flags = hdr.int_head.domain_flags ^ link_number;
                link_sent.write((bit<32>)standard_metadata.egress_port,
                                meta.sent_before + standard_metadata.packet_length + (bit<32>)added);
                LENGTHEN(added)
            } else {
                take_back();
            }
        }
    }
}

// --- egress --------------------------------------------------------------------------------------

const bit<16> INT_HEAD_BYTES = 16;    // shim and metadata header

control telemetry(inout headers_t hdr, inout metadata_t meta,
                  in standard_metadata_t standard_metadata) {
    telemetry_push() hop;

    action begin() {
        hdr.int_head.setValid();
        hdr.int_head.type = 1;
        hdr.int_head.npt = 1;
        hdr.int_head.reserved = 0;
        hdr.int_head.length = 3;
        hdr.int_head.original_port = hdr.udp.dst_port;
        hdr.int_head.version = 2;
        hdr.int_head.discard = 0;
        hdr.int_head.hops_exceeded = 0;
        hdr.int_head.mtu_exceeded = 0;
        hdr.int_head.reserved2 = 0;
        hdr.int_head.hop_words = meta.int_order.hop_words;
        hdr.int_head.hops_left = meta.int_order.hops;
        hdr.int_head.instructions = meta.int_order.instructions;
        hdr.int_head.domain = meta.int_order.domain;
        hdr.int_head.domain_instructions = 0;
        hdr.int_head.domain_flags = 0;
        hdr.udp.dst_port = UDP_PORT_INT;
        LENGTHEN(INT_HEAD_BYTES)
    }

    // Two lengths: the shim's, in words without itself, and the bytes that go.
    action end() {
        bit<16> removed = ((bit<16>)hdr.int_head.length + 1) << 2;
        hdr.kept_int_head = hdr.int_head;
        hdr.kept_int_stack = hdr.int_stack;
        hdr.udp.dst_port = hdr.int_head.original_port;
        LENGTHEN(0 - removed)
        hdr.int_head.setInvalid();
        hdr.int_stack.setInvalid();

        NOTE_HOP
    }

    action tell() {
        meta.copy_purpose = copy_t.INT_REPORT;
        meta.copy_session = SESSION_REPORTS;
    }

    table int_sinks {
        key = { standard_metadata.egress_port : exact; }
        actions = { end; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    bit<32> node = 0;
    bit<16> mtu = 0xFFFF;

    // link_mtu: the bytes after the Ethernet header that a packet may have on this switch's links.
    action be_hop(bit<32> node_id, bit<16> link_mtu) {
        node = node_id;
        mtu = link_mtu;
    }

    // A switch that is to add nothing has no entry.
    table int_hops {
        actions = { be_hop; NoAction; }
        default_action = NoAction();
    }

    apply {
        bool is_hop = false;
        switch (int_hops.apply().action_run) {
            be_hop: { is_hop = true; }
        }
        bit<16> size = (hdr.ipv4.isValid() ? hdr.ipv4.total_len
                                           : hdr.ipv6.payload_len + IPV6_BYTES) +
            (hdr.conga.isValid() ? CONGA_BYTES : 0);
        if (hdr.carrier.isValid()) {
            size = hdr.carrier.payload_len + IPV6_BYTES;
        }
        bit<16> room = mtu |-| size;
        if (meta.int_order.wanted && room >= INT_HEAD_BYTES) {
            begin();
            room = room - INT_HEAD_BYTES;
        }
        if (hdr.int_head.isValid()) {
            if (!int_sinks.apply().hit) {
                if (is_hop && meta.drop_reason != drop_reason_t.TRIMMED) {
                    hop.apply(hdr, meta, node, room, standard_metadata);
                }
            } else if (hdr.kept_int_head.length >= 0x40) {
                meta.drop_reason = drop_reason_t.MALFORMED;
            } else if (meta.copy_purpose == copy_t.NONE) {
                tell();
            }
        }
    }
}

#endif
