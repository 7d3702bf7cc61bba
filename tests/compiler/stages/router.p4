/* A router that uses much of the language at once, shown after every stage: parsing with select,
 * lpm and exact tables, a hash over flow fields for equal-cost paths, counters of both kinds,
 * registers, packet-in and packet-out, checksums.
 */
#include <v1model.p4>

#define PATHS 4

typedef bit<48> mac_t;
typedef bit<32> ipv4_t;
@p4runtime_translation("closlab/port", 32)
type bit<9> port_t;

const bit<16> TYPE_IPV4 = 0x0800;
const port_t CPU_PORT = (port_t)9w510;

enum bit<8> proto_t {
    TCP = 6,
    UDP = 17
}

@controller_header("packet_in")
header packet_in_t {
    port_t port;
    bit<7> pad;
}

@controller_header("packet_out")
header packet_out_t {
    port_t port;
    bit<7> pad;
}

header ethernet_t {
    mac_t   dst;
    mac_t   src;
    bit<16> type;
}

header ipv4_h {
    bit<4>  version;
    bit<4>  ihl;
    bit<6>  dscp;
    bit<2>  ecn;
    bit<16> length;
    bit<16> id;
    bit<3>  flags;
    bit<13> fragment;
    bit<8>  ttl;
    proto_t proto;
    bit<16> checksum;
    ipv4_t  src;
    ipv4_t  dst;
}

header udp_t {
    bit<16> src;
    bit<16> dst;
    bit<16> length;
    bit<16> checksum;
}

struct headers_t {
    packet_in_t  packet_in;
    packet_out_t packet_out;
    ethernet_t   ethernet;
    ipv4_h       ipv4;
    udp_t        udp;
}

struct meta_t {
    bit<16> group;
    bit<16> path;
    bool    routed;
}

parser RouterParser(packet_in pkt, out headers_t hdr, inout meta_t meta,
                    inout standard_metadata_t std) {
    state start {
        transition select(std.ingress_port) {
            510: from_cpu;
            default: ethernet;
        }
    }
    state from_cpu {
        pkt.extract(hdr.packet_out);
        transition ethernet;
    }
    state ethernet {
        pkt.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        pkt.extract(hdr.ipv4);
        transition select(hdr.ipv4.fragment, hdr.ipv4.proto) {
            (0, proto_t.UDP): udp;
            default: accept;
        }
    }
    state udp {
        pkt.extract(hdr.udp);
        transition accept;
    }
}

control RouterVerify(inout headers_t hdr, inout meta_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(),
                        { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn,
                          hdr.ipv4.length, hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.fragment,
                          hdr.ipv4.ttl, hdr.ipv4.proto, hdr.ipv4.src, hdr.ipv4.dst },
                        hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    counter(512, CounterType.packets_and_bytes) port_in;
    direct_counter(CounterType.packets) route_hits;
    register<bit<32>>(16) seen;

    @brief("Discards the packet")
    action drop() {
        mark_to_drop(std);
        exit;
    }

    action to_group(bit<16> group) {
        meta.group = group;
        meta.routed = true;
        route_hits.count();
    }

    action forward(@id(2) port_t port, @id(1) mac_t mac) {
        std.egress_spec = (bit<9>)port;
        hdr.ethernet.dst = mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl |-| 1;
    }

    table routes {
        key = {
            hdr.ipv4.dst : lpm;
        }
        actions = {
            to_group;
            drop;
        }
        default_action = drop();
        counters = route_hits;
        size = 256;
    }

    @name("paths")
    table next_hops {
        key = {
            meta.group : exact @name("group");
            meta.path : exact @name("path");
        }
        actions = {
            forward;
            @defaultonly drop;
        }
        const default_action = drop();
    }

    apply {
        port_in.count((bit<32>)std.ingress_port);
        if (hdr.packet_out.isValid()) {
            std.egress_spec = (bit<9>)hdr.packet_out.port;
            hdr.packet_out.setInvalid();
        } else if (std.checksum_error == 1 || !hdr.ipv4.isValid() || hdr.ipv4.ttl < 2) {
            hdr.packet_in.setValid();
            hdr.packet_in.port = (port_t)std.ingress_port;
            hdr.packet_in.pad = 0;
            std.egress_spec = (bit<9>)CPU_PORT;
        } else {
            bit<32> count;
            seen.read(count, 0);
            seen.write(0, count + 1);
            if (routes.apply().hit) {
                hash(meta.path, HashAlgorithm.crc32, 16w0,
                     { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.proto, hdr.udp.src, hdr.udp.dst },
                     (bit<16>)PATHS);
                next_hops.apply();
            }
        }
    }
}

control RouterEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        if (hdr.ipv4.isValid() && std.deq_qdepth > 20 && hdr.ipv4.ecn != 0) {
            hdr.ipv4.ecn = 3;
        }
    }
}

control RouterUpdate(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
                        { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn,
                          hdr.ipv4.length, hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.fragment,
                          hdr.ipv4.ttl, hdr.ipv4.proto, hdr.ipv4.src, hdr.ipv4.dst },
                        hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterDeparser(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.packet_in);
        pkt.emit(hdr.ethernet);
        pkt.emit(hdr.ipv4);
        pkt.emit(hdr.udp);
    }
}

V1Switch(RouterParser(), RouterVerify(), RouterIngress(), RouterEgress(), RouterUpdate(),
         RouterDeparser()) main;
