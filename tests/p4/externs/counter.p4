// Counters by index, of packets and of bytes; an index beyond the end counts nothing.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    counter(4, CounterType.packets_and_bytes) both;
    counter(4, CounterType.packets) packets;
    counter(4, CounterType.bytes) octets;

    apply {
        std.egress_spec = 2;
        both.count((bit<32>)hdr.data.b1);
        packets.count((bit<32>)hdr.data.b1);
        octets.count((bit<32>)hdr.data.b1);
    }
}

#include "../include/after.p4"
