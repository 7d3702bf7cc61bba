// A meter of bytes takes the whole packet's length.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    meter(4, MeterType.bytes) rates;

    apply {
        std.egress_spec = 2;
        rates.execute_meter<bit<8>>(2, hdr.data.b2);
    }
}

#include "../include/after.p4"
