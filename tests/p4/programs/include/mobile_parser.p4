/* From bytes to headers and back, one layer a state; checksums of both IPv4 headers. */
#ifndef MOBILE_PARSER_P4
#define MOBILE_PARSER_P4

#include "mobile_headers.p4"

parser Transport(packet_in packet, in ip_proto_t protocol, out tcp_h tcp, out udp_h udp,
                 out icmp_h icmp) {
    state start {
        transition select(protocol) {
            ip_proto_t.tcp: parse_tcp;
            ip_proto_t.udp: parse_udp;
            ip_proto_t.icmp: parse_icmp;
            ip_proto_t.icmpv6: parse_icmp;
            default: accept;
        }
    }
    state parse_tcp {
        packet.extract(tcp);
        transition accept;
    }
    state parse_udp {
        packet.extract(udp);
        transition accept;
    }
    state parse_icmp {
        packet.extract(icmp);
        transition accept;
    }
}

parser MobileParser(packet_in packet, out headers_t hdr, inout meta_t meta,
                    inout standard_metadata_t std) {
    Transport() transport;

    state start {
        meta.ingress_port = (port_num_t)std.ingress_port;
        meta.vlan = DEFAULT_VLAN;
        meta.kind = forwarding_t.unknown;
        meta.upf.from = interface_t.none;
        meta.upf.drop = upf_drop_t.none;
        transition select(std.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }
    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }
    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(packet.lookahead<bit<16>>()) {
            eth_type_t.vlan: parse_vlan;
            eth_type_t.qinq: parse_vlan;
            default: parse_eth_type;
        }
    }
    state parse_vlan {
        packet.extract(hdr.vlan.next);
        transition select(packet.lookahead<bit<16>>(), hdr.vlan.lastIndex) {
            (eth_type_t.vlan, 0): parse_vlan;
            (eth_type_t.vlan, _): too_many_tags;
            default: parse_eth_type;
        }
    }
    state too_many_tags {
        verify(false, error.TooManyTags);
        transition accept;
    }
    state parse_eth_type {
        packet.extract(hdr.eth_type);
        transition select(hdr.eth_type.value) {
            eth_type_t.mpls: parse_mpls;
            eth_type_t.ipv4: parse_ipv4;
            eth_type_t.ipv6: parse_ipv6;
            default: accept;
        }
    }
    state parse_mpls {
        packet.extract(hdr.mpls);
        meta.was_label = hdr.mpls.label;
        meta.mpls_ttl = hdr.mpls.ttl;
        transition select(hdr.mpls.bottom, packet.lookahead<bit<4>>()) {
            (1, 4): parse_ipv4;
            (1, 6): parse_ipv6;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4, error.NotIpv4);
        verify(hdr.ipv4.ihl == 5, error.ShortIpv4);
        meta.dscp = hdr.ipv4.class.dscp;
        transition select(hdr.ipv4.fragment, hdr.ipv4.protocol) {
            (0, ip_proto_t.udp): parse_outer_udp;
            (0, _): parse_transport_4;
            default: accept;
        }
    }
    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        verify(hdr.ipv6.version == 6, error.NotIpv6);
        meta.dscp = hdr.ipv6.class.dscp;
        transport.apply(packet, hdr.ipv6.next, hdr.tcp, hdr.udp, hdr.icmp);
        transition accept;
    }
    state parse_transport_4 {
        transport.apply(packet, hdr.ipv4.protocol, hdr.tcp, hdr.udp, hdr.icmp);
        transition accept;
    }
    state parse_outer_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dport) {
            UDP_GTPU: parse_gtpu;
            default: accept;
        }
    }
    state parse_gtpu {
        hdr.outer.ipv4 = hdr.ipv4;
        hdr.outer.udp = hdr.udp;
        hdr.ipv4.setInvalid();
        hdr.udp.setInvalid();
        packet.extract(hdr.outer.gtpu);
        verify(hdr.outer.gtpu.version == 1, error.GtpVersion);
        transition select(hdr.outer.gtpu.message, hdr.outer.gtpu.has_extension,
                          hdr.outer.gtpu.has_sequence, hdr.outer.gtpu.has_npdu) {
            (GTP_GPDU, 0, 0, 0): parse_inner;
            (GTP_GPDU, _, _, _): parse_gtpu_options;
            default: accept;
        }
    }
    state parse_gtpu_options {
        packet.extract(hdr.outer.options);
        bit<8> units = packet.lookahead<bit<8>>();
        transition select(hdr.outer.options.next_extension, units) {
            (GTP_EXT_PSC, 1): parse_psc;
            (0, _): parse_inner;
            default: accept;
        }
    }
    state parse_psc {
        packet.extract(hdr.outer.psc);
        meta.upf.qfi = hdr.outer.psc.qfi;
        transition select(hdr.outer.psc.next_extension) {
            0: parse_inner;
            default: accept;
        }
    }
    state parse_inner {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4, error.NotIpv4);
        transition select(hdr.ipv4.fragment) {
            0: parse_transport_4;
            default: accept;
        }
    }
}

#define IPV4_WORDS(ip) \
    { ip.version, ip.ihl, ip.class.dscp, ip.class.ecn, ip.total_len, ip.identification, ip.flags, \
      ip.fragment, ip.ttl, ip.protocol, ip.src, ip.dst }

control MobileVerify(inout headers_t hdr, inout meta_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(), IPV4_WORDS(hdr.ipv4), hdr.ipv4.checksum,
                        HashAlgorithm.csum16);
        verify_checksum(hdr.outer.ipv4.isValid(), IPV4_WORDS(hdr.outer.ipv4),
                        hdr.outer.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control MobileUpdate(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), IPV4_WORDS(hdr.ipv4), hdr.ipv4.checksum,
                        HashAlgorithm.csum16);
        update_checksum(hdr.outer.ipv4.isValid(), IPV4_WORDS(hdr.outer.ipv4),
                        hdr.outer.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control MobileDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.eth_type);
        packet.emit(hdr.mpls);
        packet.emit(hdr.outer);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.tcp);
        packet.emit(hdr.udp);
        packet.emit(hdr.icmp);
    }
}

#endif
