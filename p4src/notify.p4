// Notify: a switch whose queue is too long tells the sender itself (fast CNP; docs/csig.md).
//
// Ask.   Where a packet of RoCEv2 is to be marked and its port has an entry, it is not: a copy is
//        asked for instead, once in a while for each flow. Who is told by the switch does not hear of
//        it a second time by the receiver. The copy leaves into the port its packet came by.
// Begin. In egress the copy is cut to Ethernet, IP, UDP and the transport's header, and goes round.
// Turn.  Come back, a copy of a write or a send turns into a notification to the sender, from the
//        switch: the transport's header keeps the queue pair it was meant for, and behind it stands
//        whose that is, the packet's destination. By both the sender knows its own queue pair; where
//        the draft has an IPv6 option for that address, which this fabric would refuse, the 16 bytes
//        have it that a CNP leaves empty. From there on it is a packet like any other.
//
// Reads:  the port, meta.dst_port, meta.claim.in_port, hdr, the clock.
// Writes: meta.copy_*, notified, notices; of a copy hdr, all that is there, meta.dst_port and
//         standard_metadata.
// Stops:  a packet whose one copy is needed otherwise is marked; so is what is not RoCEv2.

#ifndef NOTIFY_P4
#define NOTIFY_P4

#include "headers.p4"
#include "sizes.p4"
#include "flow.p4"

@times register<tick_t>(NOTIFIED) notified;    // by flow: when its sender was told last
counter(PORTS, CounterType.packets) notices;   // asked for, by the port of the queue

// --- egress: is its sender to be told? -----------------------------------------------------------

control notify_ask(in headers_t hdr, inout metadata_t meta,
                   in standard_metadata_t standard_metadata, inout bool is_told) {
    flow_hash() hashing;

    action notify(tick_t interval, bit<32> flow) {
        tick_t now = standard_metadata.egress_global_timestamp;
        bit<32> place = flow & (NOTIFIED - 1);
        tick_t last;
        notified.read(last, place);
        bool is_due = last == 0 || now - last >= interval;
        notified.write(place, is_due ? now : last);
        meta.copy_purpose = is_due ? copy_t.NOTICE : copy_t.NONE;
        meta.copy_session = SESSION_OF(meta.claim.in_port);
    }

    tick_t least = 0;

    action tell_sender(tick_t interval) {
        least = interval;
    }

    table notifiers {
        key = { standard_metadata.egress_port : exact; }
        actions = { tell_sender; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        if (meta.dst_port == UDP_PORT_ROCE && meta.copy_purpose == copy_t.NONE &&
                notifiers.apply().hit) {
            is_told = true;
            bit<32> flow;
            hashing.apply(hdr, meta, flow);
            notify(least, flow);
            if (meta.copy_purpose == copy_t.NOTICE) {
                notices.count((bit<32>)standard_metadata.egress_port);
            }
        }
    }
}

// --- egress: what is to go round -----------------------------------------------------------------

control notify_begin(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
        hdr.ethernet.ether_type = ETHERTYPE_NOTICE;
        hdr.conga.setInvalid();
        hdr.vlan.setInvalid();
        hdr.csig.setInvalid();
        hdr.csig_wide.setInvalid();
        hdr.carrier.setInvalid();
        hdr.srh.setInvalid();
        hdr.segments[0].setInvalid();
        hdr.segments[1].setInvalid();
        hdr.segments[2].setInvalid();
        NO_IOAM
        hdr.int_head.setInvalid();
        hdr.int_stack.setInvalid();
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
        truncate((bit<32>)(ETHERNET_BYTES + (hdr.ipv6.isValid() ? IPV6_BYTES : IPV4_BYTES) +
                           UDP_BYTES + BTH_BYTES));
        recirculate_preserving_field_list(NOTICE_FIELDS);
    }
}

// --- ingress: a copy becomes a notification ------------------------------------------------------

control notify_turn(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    ipv4_addr_t own_address = 0;
    mac_t       own_mac = 0;
    bit<6>      dscp = 0;

    action be_notifier(ipv4_addr_t address, mac_t mac, bit<6> notice_dscp) {
        own_address = address;
        own_mac = mac;
        dscp = notice_dscp;
    }

    table notifier {
        actions = { be_notifier; NoAction; }
        default_action = NoAction();
    }

    bit<32> crc = 0;

    // From UDP on the sum is of the same under both; what may change counts as ones.
    #define SUMMED hdr.udp.src_port, hdr.udp.dst_port, hdr.udp.length, 16w0xFFFF,              \
        hdr.bth.opcode, hdr.bth.flags, hdr.bth.partition, 8w0xFF, hdr.bth.queue_pair,          \
        hdr.bth.ack, hdr.bth.psn, hdr.notice.address

    action turn_ipv4() {
        hdr.notice.address = hdr.ipv4.dst_addr ++ 96w0;
        hdr.ipv4.dst_addr = hdr.ipv4.src_addr;
        hdr.ipv4.src_addr = own_address;
        hdr.ipv4.dscp = dscp;
        hdr.ipv4.ecn = ECN_CAPABLE_0;
        hdr.ipv4.ttl = 64;
        hdr.ipv4.total_len = IPV4_BYTES + NOTICE_BYTES;
        hdr.ethernet.ether_type = ETHERTYPE_IPV4;
        hash(crc, HashAlgorithm.crc32, 32w0,
             { 64w0xFFFFFFFFFFFFFFFF, 8w0x45, 8w0xFF, hdr.ipv4.total_len, hdr.ipv4.identification,
               hdr.ipv4.flags, hdr.ipv4.frag_offset, 8w0xFF, hdr.ipv4.protocol, 16w0xFFFF,
               hdr.ipv4.src_addr, hdr.ipv4.dst_addr, SUMMED },
             33w0x100000000);
    }

    action turn_ipv6() {
        hdr.notice.address = hdr.ipv6.dst_addr;
        hdr.ipv6.dst_addr = hdr.ipv6.src_addr;
        hdr.ipv6.src_addr = 96w0xFFFF ++ own_address;
        hdr.ipv6.dscp = dscp;
        hdr.ipv6.ecn = ECN_CAPABLE_0;
        hdr.ipv6.hop_limit = 64;
        hdr.ipv6.payload_len = NOTICE_BYTES;
        hdr.ethernet.ether_type = ETHERTYPE_IPV6;
        hash(crc, HashAlgorithm.crc32, 32w0,
             { 64w0xFFFFFFFFFFFFFFFF, 32w0x6FFFFFFF, hdr.ipv6.payload_len, hdr.ipv6.next_header,
               8w0xFF, hdr.ipv6.src_addr, hdr.ipv6.dst_addr, SUMMED },
             33w0x100000000);
    }

    // The sum stands with its low byte first.
    action close() {
        hdr.notice.icrc = crc[7:0] ++ crc[15:8] ++ crc[23:16] ++ crc[31:24];
        hdr.ethernet.dst_addr = own_mac;
    }

    apply {
        meta.copy_purpose = copy_t.NONE;
        notifier.apply();
        if (hdr.bth.opcode < BTH_SENDS_AND_WRITES && own_address != 0) {
            hdr.notice.setValid();
            hdr.bth.opcode = BTH_CNP;
            hdr.bth.flags = hdr.bth.flags & 0x4F;      // no solicited event, no pad
            hdr.bth.congestion = BTH_BECN;
            hdr.bth.ack = 0;
            hdr.bth.psn = 0;
            hdr.udp.dst_port = UDP_PORT_ROCE;
            hdr.udp.length = NOTICE_BYTES;
            hdr.udp.checksum = 0;
            meta.dst_port = UDP_PORT_ROCE;
            if (hdr.ipv4.isValid()) {
                turn_ipv4();
            } else {
                turn_ipv6();
            }
            close();
        } else {
            mark_to_drop(standard_metadata);
            exit;
        }
    }
}

#endif
