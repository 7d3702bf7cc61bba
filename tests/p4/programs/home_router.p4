// A home router behind VLANs: answers ARP and pings, filters by ports, routes, renews checksums.
#include <core.p4>
#include <v1model.p4>

typedef bit<48> EthernetAddress;
typedef bit<32> IPv4Address;
enum bit<16> EtherType { IPV4 = 0x0800, ARP = 0x0806, VLAN = 0x8100, IPV6 = 0x86dd }
enum bit<8> IpProto { ICMP = 1, TCP = 6, UDP = 17 }
const EthernetAddress ROUTER_MAC = 48w0x02_00_00_00_00_01;
const IPv4Address ROUTER_IP = 10 << 24 | 0 << 16 | 0 << 8 | 1;

header ethernet_h {
    EthernetAddress dst;
    EthernetAddress src;
    EtherType type_;
}

header vlan_h {
    bit<3> pcp;
    bit<1> dei;
    bit<12> vid;
    EtherType type_;
}

header arp_h {
    bit<16> htype;
    EtherType ptype;
    bit<8> hlen;
    bit<8> plen;
    bit<16> oper;
    EthernetAddress sha;
    IPv4Address spa;
    EthernetAddress tha;
    IPv4Address tpa;
}

header ipv4_h {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> len;
    bit<16> id;
    bit<3> flags;
    bit<13> frag;
    bit<8> ttl;
    IpProto proto;
    bit<16> csum;
    IPv4Address src;
    IPv4Address dst;
}

header icmp_h {
    bit<8> type_;
    bit<8> code;
    bit<16> csum;
    bit<32> rest;
}

header l4_ports_h { bit<16> sport; bit<16> dport; }
header udp_rest_h { bit<16> len; bit<16> csum; }
struct hdrs {
    ethernet_h eth;
    vlan_h[2] vlan;
    arp_h arp;
    ipv4_h ip;
    icmp_h icmp;
    l4_ports_h ports;
    udp_rest_h udp;
}

struct meta_t { bit<12> vid; bool routed; EtherType inner; }

parser EthParser(packet_in b, out ethernet_h eth, out EtherType t) {
    state start { b.extract(eth); t = eth.type_; transition accept; }
}

parser P(packet_in b, out hdrs h, inout meta_t m, inout standard_metadata_t sm) {
    EthParser() ethp;
    state start {
        m.vid = 1;
        ethp.apply(b, h.eth, m.inner);
        transition select(m.inner) {
            EtherType.VLAN: vlan;
            EtherType.ARP: arp;
            EtherType.IPV4: ip;
            _: accept;
        }
    }
    state vlan {
        b.extract(h.vlan.next);
        m.vid = h.vlan.last.vid;
        transition select(h.vlan.last.type_, h.vlan.lastIndex) {
            (EtherType.VLAN, 0): vlan;
            (EtherType.ARP, _): arp;
            (EtherType.IPV4, 0 .. 1): ip;
            (_, _): accept;
        }
    }
    state arp { b.extract(h.arp); transition accept; }
    state ip {
        b.extract(h.ip);
        verify(h.ip.version == 4 && h.ip.ihl >= 5, error.ParserInvalidArgument);
        transition select(h.ip.frag, h.ip.ihl, h.ip.proto) {
            (0, 5, IpProto.ICMP): icmp;
            (0, 5, IpProto.TCP): tcp;
            (0, 5, IpProto.UDP &&& 8w0xff): udp;
            default: accept;
        }
    }
    state icmp { b.extract(h.icmp); transition accept; }
    state tcp { b.extract(h.ports); transition accept; }
    state udp { b.extract(h.ports); b.extract(h.udp); transition accept; }
}

control V(inout hdrs h, inout meta_t m) {
    apply {
        verify_checksum(h.ip.isValid(),
            { h.ip.version, h.ip.ihl, h.ip.tos, h.ip.len, h.ip.id, h.ip.flags,
              h.ip.frag, h.ip.ttl, h.ip.proto, h.ip.src, h.ip.dst },
            h.ip.csum, HashAlgorithm.csum16);
    }
}

control ArpReply(inout hdrs h, inout standard_metadata_t sm, in EthernetAddress mac) {
    action reply() {
        h.arp.oper = 2;
        h.arp.tha = h.arp.sha;
        IPv4Address t = h.arp.spa;
        h.arp.spa = h.arp.tpa;
        h.arp.tpa = t;
        h.arp.sha = mac;
        h.eth.dst = h.eth.src;
        h.eth.src = mac;
        sm.egress_spec = sm.ingress_port;
    }
    apply { if (h.arp.oper == 1 && h.arp.tpa == ROUTER_IP) { reply(); } else { mark_to_drop(sm); } }
}

control I(inout hdrs h, inout meta_t m, inout standard_metadata_t sm) {
    ArpReply() arp_reply;
    direct_counter(CounterType.packets_and_bytes) acl_hits;
    counter(512, CounterType.packets) ports_seen;
    register<bit<32>>(4) stats;

    action deny() { mark_to_drop(sm); acl_hits.count(); }
    action permit() { acl_hits.count(); }
    action permit_and_rewrite(@name("new_tos") bit<8> tos) { h.ip.tos[7:2] = tos[5:0]; acl_hits.count(); }
    table acl {
        key = {
            h.ip.src : ternary @name("src");
            h.ip.dst : ternary;
            h.ip.proto : ternary;
            h.ports.dport : range;
            h.ports.isValid() : exact;
            m.vid : optional;
        }
        actions = { deny; permit; permit_and_rewrite; }
        const default_action = permit();
        counters = acl_hits;
        size = 128;
        const entries = {
            (0x0a000000 &&& 0xff000000, _, IpProto.TCP, 0..1023, true, _) : deny();
            (_, _, IpProto.UDP, 53..53, true, 7) : permit_and_rewrite(46);
        }
    }
    action nexthop(EthernetAddress dmac, bit<9> port) {
        h.eth.src = ROUTER_MAC;
        h.eth.dst = dmac;
        h.ip.ttl = h.ip.ttl |-| 1;
        sm.egress_spec = port;
        m.routed = true;
    }
    action to_self() {}
    action unreachable() {}
    table route { key = { h.ip.dst : lpm; } actions = { nexthop; to_self; unreachable; } default_action = unreachable(); }


    apply {
        ports_seen.count((bit<32>)sm.ingress_port);
        if (sm.parser_error != error.NoError || sm.checksum_error == 1) { mark_to_drop(sm); exit; }
        if (h.arp.isValid()) { arp_reply.apply(h, sm, ROUTER_MAC); return; }
        if (!h.ip.isValid()) { mark_to_drop(sm); return; }
        switch (acl.apply().action_run) {
            deny: { stats.write(0, 1); return; }
            permit_and_rewrite:
            permit: { }
        }
        switch (route.apply().action_run) {
            to_self: {
                if (h.icmp.isValid() && h.icmp.type_ == 8) {
                    h.icmp.type_ = 0;
                    h.icmp.csum = h.icmp.csum + 0x0800;
                    EthernetAddress e = h.eth.src; h.eth.src = h.eth.dst; h.eth.dst = e;
                    IPv4Address i = h.ip.src; h.ip.src = h.ip.dst; h.ip.dst = i;
                    sm.egress_spec = sm.ingress_port;
                } else { mark_to_drop(sm); }
            }
            unreachable: { mark_to_drop(sm); }
            default: { if (h.ip.ttl == 0) mark_to_drop(sm); }
        }
    }
}
control E(inout hdrs h, inout meta_t m, inout standard_metadata_t sm) {
    apply {
        if (h.vlan[1].isValid()) { h.vlan.pop_front(1); h.eth.type_ = EtherType.VLAN; }
    }
}
control U(inout hdrs h, inout meta_t m) {
    apply {
        update_checksum(h.ip.isValid(),
            { h.ip.version, h.ip.ihl, h.ip.tos, h.ip.len, h.ip.id, h.ip.flags,
              h.ip.frag, h.ip.ttl, h.ip.proto, h.ip.src, h.ip.dst },
            h.ip.csum, HashAlgorithm.csum16);
    }
}
control D(packet_out b, in hdrs h) {
    apply {
        b.emit(h.eth);
        b.emit(h.vlan);
        b.emit(h.arp);
        b.emit(h.ip);
        b.emit(h.icmp);
        b.emit(h.ports);
        b.emit(h.udp);
    }
}
V1Switch(P(), V(), I(), E(), U(), D()) main;
