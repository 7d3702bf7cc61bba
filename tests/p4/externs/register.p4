// A register read, changed and written back; one array is shared by ingress and egress.
#include "../include/before.p4"

struct headers_t {
    data_t data;
}

struct metadata_t {
    bit<16> seen;
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<16>>(4) totals;

    apply {
        std.egress_spec = 2;
        bit<32> index = (bit<32>)hdr.data.b1;
        bit<16> total;
        totals.read(total, index);
        total = total + hdr.data.h1;
        totals.write(index, total);
        hdr.data.h2 = total;
    }
}

#include "../include/after.p4"
