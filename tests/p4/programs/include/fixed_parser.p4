/* Layers in and out, and IPv4's checksum. */
#ifndef FIXED_PARSER_P4
#define FIXED_PARSER_P4

#include "fixed_headers.p4"

parser FixedParser(packet_in packet, out headers_t hdr, inout meta_t meta,
                   inout standard_metadata_t std) {
    state start {
        meta.ingress_port = (port_id_t)std.ingress_port;
        meta.vrf = DEFAULT_VRF;
        meta.label = NO_LABEL;
        meta.mirror.session = NO_SESSION;
        transition select(std.ingress_port) {
            CPU_PORT: packet_out_header;
            default: ethernet;
        }
    }
    state packet_out_header {
        packet.extract(hdr.packet_out);
        transition ethernet;
    }
    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type_) {
            ether_type_t.vlan: vlan;
            ether_type_t.ipv4: ipv4;
            ether_type_t.ipv6: ipv6;
            ether_type_t.arp: arp;
            default: accept;
        }
    }
    state vlan {
        packet.extract(hdr.vlan);
        meta.vlan = hdr.vlan.id;
        transition select(hdr.vlan.type_) {
            ether_type_t.ipv4: ipv4;
            ether_type_t.ipv6: ipv6;
            ether_type_t.arp: arp;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4, error.Version);
        verify(hdr.ipv4.ihl == 5, error.Lengths);
        meta.is_ip = 1;
        meta.dscp = hdr.ipv4.dscp;
        meta.ttl = hdr.ipv4.ttl;
        meta.protocol = hdr.ipv4.protocol;
        transition select(hdr.ipv4.protocol) {
            1: icmp;
            6: tcp;
            17: udp;
            default: accept;
        }
    }
    state ipv6 {
        packet.extract(hdr.ipv6);
        verify(hdr.ipv6.version == 6, error.Version);
        meta.is_ip = 1;
        meta.dscp = hdr.ipv6.dscp;
        meta.ttl = hdr.ipv6.hop_limit;
        meta.protocol = hdr.ipv6.next;
        transition select(hdr.ipv6.next) {
            58: icmp;
            6: tcp;
            17: udp;
            GRE: gre;
            default: accept;
        }
    }
    state gre {
        packet.extract(hdr.tunnel_gre);
        verify(hdr.tunnel_gre.version == 0, error.Tunnel);
        transition select(hdr.tunnel_gre.protocol) {
            ether_type_t.ipv4: inner_ipv4;
            default: accept;
        }
    }
    state inner_ipv4 {
        hdr.tunnel_ipv6 = hdr.ipv6;
        hdr.ipv6.setInvalid();
        meta.tunnelled = 1;
        transition ipv4;
    }
    state icmp {
        packet.extract(hdr.icmp);
        meta.sport = hdr.icmp.type_ ++ hdr.icmp.code;
        transition accept;
    }
    state tcp {
        packet.extract(hdr.tcp);
        meta.sport = hdr.tcp.sport;
        meta.dport = hdr.tcp.dport;
        transition accept;
    }
    state udp {
        packet.extract(hdr.udp);
        meta.sport = hdr.udp.sport;
        meta.dport = hdr.udp.dport;
        transition accept;
    }
    state arp {
        packet.extract(hdr.arp);
        transition accept;
    }
}

control FixedVerify(inout headers_t hdr, inout meta_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_len,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment, hdr.ipv4.ttl,
              hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control FixedUpdate(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_len,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment, hdr.ipv4.ttl,
              hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control FixedDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.mirror_ethernet);
        packet.emit(hdr.mirror_ipv6);
        packet.emit(hdr.mirror_udp);
        packet.emit(hdr.ipfix);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.tunnel_ipv6);
        packet.emit(hdr.tunnel_gre);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.arp);
        packet.emit(hdr.icmp);
        packet.emit(hdr.tcp);
        packet.emit(hdr.udp);
    }
}

#endif
