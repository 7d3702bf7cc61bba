// uSID: SRv6 with micro-segments (RFC 9800, NEXT-CSID, 32-bit block and 16-bit uSIDs).
//
// A carrier is an IPv6 header whose destination is a list of places to go by:
//
//     | block (32) | uSID (16) | uSID (16) | ... up to six ... | 0 |
//
// and which carries an IPv6 or an IPv4 packet. A list of more stands in a segment routing header behind
// it, six to a segment. Each place takes its own uSIDs out, and the others move up:
//
//     uN   a switch: takes one out and forwards to the next
//     uA   a port of a switch: takes one out, or with the switch's own before it two, and leaves by
//          that port
//     uDT  the end: takes the carrier off and routes what is in it, ECN marks and all
//
// Where the list in a carrier is used up, the segment routing header's next one takes its place. What
// has no place left to go to, or one beyond its end, is no good carrier and is dropped.
//
// Beginning. A route may say that a packet is to be steered. By that policy and its tenant, a table says
// which lists there are, and the flow's hash which of them it takes: so a flow keeps its path. Whose
// tenant the policy is not meant for goes on as its route says besides.
//
// Reads:  hdr.carrier, hdr.srh, hdr.segments; meta.steering, meta.tenant, meta.dscp, the flow.
// Writes: hdr.carrier, hdr.srh, hdr.segments, the IP header; EtherTypes before it (hdr.ethernet,
//         hdr.conga, hdr.vlan, hdr.csig*); meta.out_port and meta.next_mac where a list or a uSID names the port,
//         meta.is_steered, and meta.group then; meta.drop_reason.
// Stops:  a segment routing header has at most three segments, and no TLVs.

#ifndef USID_P4
#define USID_P4

#include "headers.p4"
#include "sizes.p4"
#include "flow.p4"

const bit<8> ROUTING_TYPE_SEGMENTS = 4;

// --- ingress: on the way ------------------------------------------------------------------------

control usid_arrive(inout headers_t hdr, inout metadata_t meta) {
    bit<2>  consumed = 0;
    bool    ends = false;
    bit<16> inner_type = ETHERTYPE_IPV6;

    action node() {
        consumed = 1;
    }

    // own_first: the switch's own uSID stands before the port's.
    action adjacency(port_t port, mac_t next_mac, bit<1> own_first) {
        consumed = 1 + (bit<2>)own_first;
        meta.out_port = port;
        meta.next_mac = next_mac;
        meta.is_steered = true;
    }

    action decapsulate(bit<1> own_first) {
        consumed = 1 + (bit<2>)own_first;
        ends = true;
    }

    table local_sids {
        key = { hdr.carrier.dst_addr : lpm; }
        actions = { node; adjacency; decapsulate; NoAction; }
        default_action = NoAction();
        size = SIDS;
    }

    // What IP says of the packet inside, as RFC 6040 has it: a mark on the way stays.
    action take_off() {
        hdr.ipv6.ecn = hdr.carrier.ecn == ECN_CONGESTED && hdr.ipv6.ecn != ECN_NOT_CAPABLE
            ? ECN_CONGESTED : hdr.ipv6.ecn;
        hdr.ipv4.ecn = hdr.carrier.ecn == ECN_CONGESTED && hdr.ipv4.ecn != ECN_NOT_CAPABLE
            ? ECN_CONGESTED : hdr.ipv4.ecn;
        hdr.carrier.setInvalid();
        hdr.srh.setInvalid();
        hdr.segments[0].setInvalid();
        hdr.segments[1].setInvalid();
        hdr.segments[2].setInvalid();
    }

    action next_carrier(ipv6_addr_t segment) {
        hdr.carrier.dst_addr = segment;
        hdr.srh.segments_left = hdr.srh.segments_left - 1;
    }

    action bad_carrier() {
        meta.drop_reason = drop_reason_t.BAD_CARRIER;
    }

    apply {
        local_sids.apply();
        bit<96> left = hdr.carrier.dst_addr[95:0];
        if (consumed == 1) {
            left = left << 16;
        } else if (consumed == 2) {
            left = left << 32;
        }
        if (ends) {
            if (left != 0 || (hdr.srh.isValid() && hdr.srh.segments_left != 0)) {
                bad_carrier();
            } else if (hdr.carrier.ecn == ECN_CONGESTED &&
                       (hdr.ipv4.isValid() ? hdr.ipv4.ecn : hdr.ipv6.ecn) == ECN_NOT_CAPABLE) {
                bad_carrier();    // a mark that its sender would never hear of
            } else {
                if (hdr.ipv4.isValid()) {
                    inner_type = ETHERTYPE_IPV4;
                }
                NAME_NETWORK(inner_type)
                take_off();
            }
        } else if (consumed != 0) {
            if (left != 0) {
                hdr.carrier.dst_addr = hdr.carrier.dst_addr[127:96] ++ left;
            } else if (!hdr.srh.isValid() || hdr.srh.segments_left > hdr.srh.last_entry + 1) {
                bad_carrier();
            } else if (hdr.srh.segments_left == 1) {
                next_carrier(hdr.segments[0].sids);
            } else if (hdr.srh.segments_left == 2) {
                next_carrier(hdr.segments[1].sids);
            } else if (hdr.srh.segments_left == 3) {
                next_carrier(hdr.segments[2].sids);
            } else {
                bad_carrier();
            }
        }
    }
}

// --- ingress: the beginning ---------------------------------------------------------------------

control usid_depart(inout headers_t hdr, inout metadata_t meta) {
    flow_hash() hashing;

    bit<16> first = 0;
    bit<16> count = 0;
    bit<16> chosen = 0;
    bit<32> flow = 0;

    action choose(bit<16> first_list, bit<16> lists) {
        first = first_list;
        count = lists;
    }

    table segment_policies {
        key = {
            meta.steering : exact;
            meta.tenant   : exact;
        }
        actions = { choose; NoAction; }
        default_action = NoAction();
        size = POLICIES;
    }

    action no_list() {
        meta.drop_reason = drop_reason_t.NO_NEXT_HOP;
    }

    action put_on(ipv6_addr_t src_addr, ipv6_addr_t sids, port_t port, mac_t next_mac) {
        bit<16> length = hdr.ipv4.isValid() ? hdr.ipv4.total_len
                                            : hdr.ipv6.payload_len + IPV6_BYTES;
        hdr.carrier.setValid();
        hdr.carrier.version = 6;
        hdr.carrier.dscp = meta.dscp;
        hdr.carrier.ecn = hdr.ipv4.isValid() ? hdr.ipv4.ecn : hdr.ipv6.ecn;
        hdr.carrier.flow_label = flow[19:0];
        hdr.carrier.payload_len = length;
        hdr.carrier.next_header = hdr.ipv4.isValid() ? PROTOCOL_IPV4 : PROTOCOL_IPV6;
        hdr.carrier.hop_limit = 64;
        hdr.carrier.src_addr = src_addr;
        hdr.carrier.dst_addr = sids;
        meta.out_port = port;
        meta.next_mac = next_mac;
        meta.group = 0;
        meta.is_steered = true;
    }

    action carrier(ipv6_addr_t src_addr, ipv6_addr_t sids, port_t port, mac_t next_mac) {
        put_on(src_addr, sids, port, next_mac);
    }

    // The first six in the carrier, up to eighteen more behind it, the last first.
    action carrier_and_segments(ipv6_addr_t src_addr, ipv6_addr_t sids, port_t port,
                                mac_t next_mac, bit<8> segments, ipv6_addr_t segment0,
                                ipv6_addr_t segment1, ipv6_addr_t segment2) {
        put_on(src_addr, sids, port, next_mac);
        hdr.srh.setValid();
        hdr.srh.next_header = hdr.carrier.next_header;
        hdr.srh.length = segments << 1;
        hdr.srh.routing_type = ROUTING_TYPE_SEGMENTS;
        hdr.srh.segments_left = segments;
        hdr.srh.last_entry = segments - 1;
        hdr.srh.flags = 0;
        hdr.srh.tag = 0;
        hdr.carrier.next_header = EXTENSION_ROUTING;
        hdr.carrier.payload_len = hdr.carrier.payload_len + SRH_BYTES + ((bit<16>)segments << 4);
        hdr.segments[0].setValid();
        hdr.segments[1].setValid();
        hdr.segments[2].setValid();
        hdr.segments[0].sids = segment0;
        hdr.segments[1].sids = segment1;
        hdr.segments[2].sids = segment2;
    }

    table segment_lists {
        key = { chosen : exact; }
        actions = { carrier; carrier_and_segments; no_list; }
        default_action = no_list();
        size = SEGMENT_LISTS;
    }

    apply {
        segment_policies.apply();
        if (count == 0) {
            if (meta.group == 0 && meta.out_port == 0) {
                no_list();
            }
        } else {
            hashing.apply(hdr, meta, flow);
            chosen = first + (bit<16>)(((flow >> 16) * (bit<32>)count) >> 16);
            segment_lists.apply();
            if (hdr.srh.isValid() && hdr.srh.last_entry < 1) {
                hdr.segments[1].setInvalid();
            }
            if (hdr.srh.isValid() && hdr.srh.last_entry < 2) {
                hdr.segments[2].setInvalid();
            }
            if (hdr.carrier.isValid()) {
                NAME_NETWORK(ETHERTYPE_IPV6)
            }
        }
    }
}

#endif
