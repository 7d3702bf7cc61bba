/* What a packet saw of queues: the ECN mark of RFC 3168 from a depth on, and a record for each
 * switch on its way, the latest first. From port 0 to port 1, and back. */
#include <core.p4>
#include <v1model.p4>

const bit<16> PROBE = 0x88b6;
const bit<19> MARK_FROM = 10; /* packets */

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header probe_t { bit<6> spare; bit<2> ecn; bit<8> hops; bit<32> number; }
header hop_t { bit<32> enq_depth; bit<32> deq_depth; }

struct headers_t { ethernet_t ethernet; probe_t probe; hop_t[4] hops; }
struct metadata_t { bit<8> left; }

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { PROBE: parse_probe; default: accept; }
    }
    state parse_probe {
        packet.extract(hdr.probe);
        meta.left = hdr.probe.hops;
        transition select(meta.left) { 0: accept; default: parse_hop; }
    }
    state parse_hop {
        packet.extract(hdr.hops.next);
        meta.left = meta.left - 1;
        transition select(meta.left) { 0: accept; default: parse_hop; }
    }
}
control check(inout headers_t hdr, inout metadata_t meta) { apply {} }
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { std.egress_spec = std.ingress_port ^ 1; }
}
control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (hdr.probe.isValid()) {
            if (hdr.probe.ecn != 0 && std.enq_qdepth >= MARK_FROM) { hdr.probe.ecn = 3; }
            hdr.hops.push_front(1);
            hdr.hops[0].setValid();
            hdr.hops[0].enq_depth = (bit<32>)std.enq_qdepth;
            hdr.hops[0].deq_depth = (bit<32>)std.deq_qdepth;
            hdr.probe.hops = hdr.probe.hops + 1;
        }
    }
}
control compute(inout headers_t hdr, inout metadata_t meta) { apply {} }
control deparse(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.ethernet); packet.emit(hdr.probe); packet.emit(hdr.hops); }
}
V1Switch(parse(), check(), ingress(), egress(), compute(), deparse()) main;
