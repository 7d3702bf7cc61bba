/* From bytes to headers, and back. */
#include "edge_headers.p4"

parser Layers(packet_in pkt, out headers_t hdr, inout meta_t meta,
              inout standard_metadata_t std) {
    state start {
        meta.vrf = DEFAULT_VRF;
        meta.mirror = NO_MIRROR;
        meta.vlan = NO_VLAN;
        meta.verdict = verdict_t.none;
        meta.ingress_port = (port_id_t)std.ingress_port;
        transition select(std.ingress_port) {
            CPU_PORT: packet_out;
            default: ethernet;
        }
    }
    state packet_out {
        pkt.extract(hdr.packet_out);
        meta.from_controller = 1;
        transition ethernet;
    }
    state ethernet {
        pkt.extract(hdr.ethernet);
        transition select(hdr.ethernet.type_) {
            ether_type_t.vlan: vlan;
            ether_type_t.ipv4: ipv4;
            ether_type_t.ipv6: ipv6;
            ether_type_t.arp: arp;
            default: accept;
        }
    }
    state vlan {
        pkt.extract(hdr.vlan);
        meta.vlan = hdr.vlan.id;
        transition select(hdr.vlan.type_) {
            ether_type_t.ipv4: ipv4;
            ether_type_t.ipv6: ipv6;
            ether_type_t.arp: arp;
            default: accept;
        }
    }
    state ipv4 {
        pkt.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4, error.BadVersion);
        verify(hdr.ipv4.ihl >= 5, error.BadLength);
        meta.is_ip = true;
        meta.dscp = hdr.ipv4.dscp;
        transition select(hdr.ipv4.fragment, hdr.ipv4.protocol) {
            (0, protocol_t.tcp): tcp;
            (0, protocol_t.udp): udp;
            (0, protocol_t.icmp): icmp;
            (0, protocol_t.ip_in_ip): inner;
            default: accept;
        }
    }
    state inner {
        hdr.outer_ipv4 = hdr.ipv4;
        pkt.extract(hdr.ipv4);
        transition accept;
    }
    state ipv6 {
        pkt.extract(hdr.ipv6);
        verify(hdr.ipv6.version == 6, error.BadVersion);
        meta.is_ip = true;
        meta.dscp = hdr.ipv6.dscp;
        transition select(hdr.ipv6.next) {
            protocol_t.tcp: tcp;
            protocol_t.udp: udp;
            protocol_t.icmpv6: icmp;
            default: accept;
        }
    }
    state tcp {
        pkt.extract(hdr.transport.tcp);
        meta.sport = hdr.transport.tcp.sport;
        meta.dport = hdr.transport.tcp.dport;
        transition accept;
    }
    state udp {
        pkt.extract(hdr.transport.udp);
        meta.sport = hdr.transport.udp.sport;
        meta.dport = hdr.transport.udp.dport;
        transition accept;
    }
    state icmp {
        pkt.extract(hdr.transport.icmp);
        meta.sport = hdr.transport.icmp.type_ ++ hdr.transport.icmp.code;
        transition accept;
    }
    state arp {
        pkt.extract(hdr.arp);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && !hdr.outer_ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.length,
              hdr.ipv4.identification, hdr.ipv4.reserved, hdr.ipv4.dont_fragment,
              hdr.ipv4.more_fragments, hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control Update(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.length,
              hdr.ipv4.identification, hdr.ipv4.reserved, hdr.ipv4.dont_fragment,
              hdr.ipv4.more_fragments, hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control Deparse(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.packet_in);
        pkt.emit(hdr.ethernet);
        pkt.emit(hdr.vlan);
        pkt.emit(hdr.outer_ipv4);
        pkt.emit(hdr.ipv4);
        pkt.emit(hdr.ipv6);
        pkt.emit(hdr.arp);
        pkt.emit(hdr.transport);
    }
}
