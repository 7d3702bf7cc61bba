// An indexed counter counts without touching the packet.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    counter(16, CounterType.packets_and_bytes) packets;

    apply {
        std.egress_spec = 2;
        packets.count((bit<32>)hdr.data.d);
    }
}

#include "../include/main.p4"
