// A meter without rates finds every packet green.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    meter(16, MeterType.packets) m;

    apply {
        std.egress_spec = 2;
        bit<32> color;
        m.execute_meter((bit<32>)hdr.data.d, color);
        hdr.data.a = color;
    }
}

#include "../include/main.p4"
