// The newer v1model: counters, meters and registers with an index type of their own.
#define V1MODEL_VERSION 20200408
#include "../include/one_header.p4"

enum bit<8> Slot {
    first = 0,
    third = 2
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    counter<bit<8>>(4, CounterType.packets) counts;
    register<bit<16>, bit<8>>(4) sums;
    meter<bit<8>>(4, MeterType.packets) rates;

    apply {
        std.egress_spec = (PortId_t)2;
        counts.count(hdr.data.b1);
        bit<16> sum;
        sums.read(sum, hdr.data.b1);
        sum = sum + hdr.data.h1;
        sums.write(hdr.data.b1, sum);
        hdr.data.h2 = sum;
        rates.execute_meter<bit<8>>(hdr.data.b1, hdr.data.b2);
    }
}

#include "../include/after.p4"
