// Structs within the metadata.
struct hop_t {
    bit<32> hop;
}
struct l3_t {
    bit<8> ttl;
    hop_t next;
}
#define OWN_METADATA
struct metadata {
    l3_t l3;
    bit<8> count;
}
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        meta.l3.ttl = hdr.data.d;
        meta.l3.next.hop = hdr.data.a;
        meta.count = 5;
        hdr.data.b = meta.l3.next.hop;
        hdr.data.e = meta.l3.ttl + meta.count;
    }
}

#include "../include/main.p4"
