// Counters and meters with an index type.
#define V1MODEL_VERSION 20200408
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    counter<bit<8>>(256, CounterType.packets) c;
    meter<bit<8>>(256, MeterType.bytes) m;

    apply {
        std.egress_spec = 2;
        c.count(hdr.data.d);
        bit<8> color;
        m.execute_meter(hdr.data.d, color);
        hdr.data.e = color;
    }
}

#include "../include/main.p4"
