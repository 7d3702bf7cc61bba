// IOAM: a trace in which packets carry what every hop says of them (RFC 9197), beside INT-MD's.
//
// Where it stands: a leaf may put no option into a packet that is not its own, so it puts the packet
// into an IPv6 header whose hop-by-hop options hold the trace (RFC 9486), IPv4 or IPv6, UDP or not.
// The trace is pre-allocated: packets grow once, by the room of all hops, and not on their way.
//
//     IPv6 | next, length, PadN | option 0x31, length, 0, type 0 | trace header | free | newest ... first
//
// Begin.    Where telemetry.p4's table orders it, on the way out of the first leaf; to the leaf that a
//           table has for the destination, which is the end. What links cannot carry begins none.
// Hop.      Writes its words behind what is free: those that the trace's type asks for, all ones for
//           what it cannot tell (a time of day, checksums, what the namespace has no meaning for). With
//           no room left it sets Overflow, and nobody writes any more. Of a type with bits that nobody has
//           defined, or whose words are not as many as its header says, it writes nothing.
// End.      Where a table says that a port leads to a host the header goes; what it held, and this hop's
//           own words, go to the collector (report.p4).
//
// Switches forward by the packet inside, which goes the same way; DSCP and ECN outside follow it.
//
// Reads:  hdr.conga, hdr.carrier, hdr.ioam*, the IP header, the clock, the ports, meta.int_order,
//         meta.priority, meta.out_used, meta.pool_used, meta.utilisation, meta.drop_reason.
// Writes: hdr.ioam*; EtherTypes before it (hdr.ethernet, hdr.conga, hdr.vlan, hdr.csig*); at the end
//         hdr.kept_*, meta.copy_*.
// Stops:  opaque state snapshots (bit 22), loopback and active flags (RFC 9322).

#ifndef IOAM_P4
#define IOAM_P4

#include "headers.p4"
#include "sizes.p4"
#include "flow.p4"
#include "report.p4"

const bit<24> IOAM_DEFINED = 0xFFF000;    // bits of a trace's type that have a meaning here

// --- egress: this hop's words --------------------------------------------------------------------

control ioam_hop(inout headers_t hdr, in metadata_t meta, in bit<24> node, in bit<64> tick,
                 in standard_metadata_t standard_metadata) {
    bit<5> words = 0;

    // Says a header of the words that a type's bit, counted from the last, asks for.
    #define IOAM_WORD(bit, size, header, field, value)      \
        if (hdr.ioam.trace[bit:bit] == 1) {                 \
            hdr.header.setValid();                          \
            hdr.header.field = value;                       \
            words = words + size;                           \
        }

    apply {
        bit<64> stayed = (bit<64>)(standard_metadata.egress_global_timestamp -
                                   standard_metadata.ingress_global_timestamp) * tick;
        bit<32> delay = stayed[63:47] == 0 ? stayed[47:16] : 0x80000000;
        bit<16> came = (bit<16>)standard_metadata.ingress_port;
        bit<16> goes = (bit<16>)standard_metadata.egress_port;
        IOAM_WORD(23, 1, ioam_node, value, hdr.ioam_ipv6.hop_limit ++ node)
        IOAM_WORD(22, 1, ioam_ports, value, came ++ goes)
        IOAM_WORD(21, 1, ioam_seconds, value, 0xFFFFFFFF)
        IOAM_WORD(20, 1, ioam_fraction, value, 0xFFFFFFFF)
        IOAM_WORD(19, 1, ioam_delay, value, delay)
        IOAM_WORD(18, 1, ioam_load, value, meta.utilisation)
        IOAM_WORD(17, 1, ioam_queue, value, meta.out_used)
        IOAM_WORD(16, 1, ioam_complement, value, 0xFFFFFFFF)
        IOAM_WORD(15, 2, ioam_node_wide, value, hdr.ioam_ipv6.hop_limit ++ 32w0 ++ node)
        IOAM_WORD(14, 2, ioam_ports_wide, value, 16w0 ++ came ++ 16w0 ++ goes)
        IOAM_WORD(13, 2, ioam_data_wide, value, 0xFFFFFFFFFFFFFFFF)
        IOAM_WORD(12, 1, ioam_buffer, value, meta.pool_used)
        if (words == hdr.ioam.node_words) {
            hdr.ioam_slot.setInvalid();
            hdr.ioam.words_left = hdr.ioam.words_left - (bit<7>)words;
        } else {
            NO_IOAM_WORDS
        }
    }
}

// --- egress --------------------------------------------------------------------------------------

control ioam(inout headers_t hdr, inout metadata_t meta, in standard_metadata_t standard_metadata) {
    flow_hash() hashing;
    ioam_hop() hop;

    bit<24>     node = 0;
    bit<16>     mtu = 0;
    bit<64>     tick = 0;
    ipv6_addr_t own = 0;
    ipv6_addr_t far = 0;

    // link_mtu: as in telemetry.p4. tick_length: of a tick, in 1/65536 ns.
    action be_ioam_node(bit<24> node_id, bit<16> link_mtu, bit<64> tick_length,
                        ipv6_addr_t address) {
        node = node_id;
        mtu = link_mtu;
        tick = tick_length;
        own = address;
    }

    table ioam_nodes {
        actions = { be_ioam_node; NoAction; }
        default_action = NoAction();
    }

    action ends_at(ipv6_addr_t address) {
        far = address;
    }

    table ioam_ends {
        key = { hdr.ipv4.dst_addr : lpm; }
        actions = { ends_at; NoAction; }
        default_action = NoAction();
        size = ROUTES;
    }

    table ipv6_ioam_ends {
        key = { hdr.ipv6.dst_addr : lpm; }
        actions = { ends_at; NoAction; }
        default_action = NoAction();
        size = ROUTES;
    }

    // `int_order.hops` is the room of the other hops, in units of 8 bytes.
    action begin(bit<16> inner_bytes, bit<32> flow) {
        bit<16> room = ((bit<16>)meta.int_order.hops << 3) + ((bit<16>)meta.int_order.hop_words << 2);
        hdr.ioam_ipv6.setValid();
        hdr.ioam_ipv6.version = 6;
        hdr.ioam_ipv6.flow_label = flow[19:0];
        hdr.ioam_ipv6.payload_len = IOAM_BYTES + room + inner_bytes;
        hdr.ioam_ipv6.next_header = EXTENSION_HOP_BY_HOP;
        hdr.ioam_ipv6.hop_limit = 64;
        hdr.ioam_ipv6.src_addr = own;
        hdr.ioam_ipv6.dst_addr = far;
        hdr.ioam.setValid();
        hdr.ioam.next_header = hdr.ipv4.isValid() ? PROTOCOL_IPV4 : PROTOCOL_IPV6;
        hdr.ioam.length = (bit<8>)((IOAM_BYTES + room) >> 3) - 1;
        hdr.ioam.padding = PADDING_OF_2;
        hdr.ioam.option = OPTION_IOAM;
        hdr.ioam.option_length = (bit<8>)(room + 10);
        hdr.ioam.reserved = 0;
        hdr.ioam.kind = 0;
        hdr.ioam.namespace = meta.int_order.domain;
        hdr.ioam.node_words = meta.int_order.hop_words;
        hdr.ioam.overflow = 0;
        hdr.ioam.flags = 0;
        hdr.ioam.words_left = (bit<7>)(room >> 2);
        hdr.ioam.trace = meta.int_order.instructions ++ 8w0;
        hdr.ioam.reserved2 = 0;
    }

    // Zeros, by powers of two.
    #define IOAM_ROOM(bit, header)                \
        if (meta.int_order.hops[bit:bit] == 1) {  \
            hdr.header.setValid();                \
            hdr.header.zeros = 0;                 \
        }

    action end_trace() {
        hdr.kept_ioam_ipv6 = hdr.ioam_ipv6;
        hdr.kept_ioam = hdr.ioam;
        hdr.kept_ioam_free = hdr.ioam_free;
        hdr.kept_ioam_slot = hdr.ioam_slot;
        hdr.kept_ioam_done = hdr.ioam_done;
        hdr.ioam_ipv6.setInvalid();
        hdr.ioam.setInvalid();
        hdr.ioam_free.setInvalid();
        hdr.ioam_slot.setInvalid();
        hdr.ioam_done.setInvalid();
        NOTE_HOP
    }

    table ioam_sinks {
        key = { standard_metadata.egress_port : exact; }
        actions = { end_trace; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        bit<16> network = hdr.ipv4.isValid() ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6;
        bool is_node = false;
        switch (ioam_nodes.apply().action_run) {
            be_ioam_node: { is_node = true; }
        }
        if (ioam_sinks.apply().hit) {
            NAME_NETWORK(network)
            if (meta.copy_purpose == copy_t.NONE) {
                meta.copy_purpose = copy_t.TRACE_REPORT;
                meta.copy_session = SESSION_REPORTS;
            }
        } else {
            if (meta.int_order.traces && !hdr.carrier.isValid()) {
                bit<16> size = hdr.ipv4.isValid() ? hdr.ipv4.total_len
                                                  : hdr.ipv6.payload_len + IPV6_BYTES;
                bit<16> more = IPV6_BYTES + IOAM_BYTES + ((bit<16>)meta.int_order.hops << 3) +
                    ((bit<16>)meta.int_order.hop_words << 2) +
                    (hdr.conga.isValid() ? CONGA_BYTES : 0);
                if (hdr.ipv4.isValid()) {
                    ioam_ends.apply();
                } else {
                    ipv6_ioam_ends.apply();
                }
                if (far != 0 && size |+| more <= mtu) {
                    bit<32> flow;
                    hashing.apply(hdr, meta, flow);
                    begin(size, flow);
                    IOAM_ROOM(0, ioam_room8)
                    IOAM_ROOM(1, ioam_room16)
                    IOAM_ROOM(2, ioam_room32)
                    IOAM_ROOM(3, ioam_room64)
                    IOAM_ROOM(4, ioam_room128)
                    NAME_NETWORK(ETHERTYPE_IPV6)
                }
            } else {
                hdr.ioam_ipv6.hop_limit = hdr.ioam_ipv6.hop_limit - 1;
            }
            if (hdr.ioam.isValid()) {
                hdr.ioam_ipv6.dscp = hdr.ipv4.isValid() ? hdr.ipv4.dscp : hdr.ipv6.dscp;
                hdr.ioam_ipv6.ecn = hdr.ipv4.isValid() ? hdr.ipv4.ecn : hdr.ipv6.ecn;
                if (is_node && meta.drop_reason != drop_reason_t.TRIMMED &&
                        hdr.ioam.overflow == 0 && hdr.ioam.trace & ~IOAM_DEFINED == 0) {
                    if (hdr.ioam.words_left < (bit<7>)hdr.ioam.node_words) {
                        hdr.ioam.overflow = 1;
                    } else {
                        hop.apply(hdr, meta, node, tick, standard_metadata);
                    }
                }
            }
        }
    }
}

#endif
