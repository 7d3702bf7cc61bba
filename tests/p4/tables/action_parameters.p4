// Parameters with directions are bound by the program, those without by the control plane.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action mix(in bit<8> x, inout bit<8> y, out bit<8> z, bit<8> from_entry) {
        y = y + x;
        z = y ^ from_entry;
    }
    action step(in bit<8> x, inout bit<8> y, out bit<8> z) {
        y = y + x;
        z = ~y;
    }
    table mixes {
        key = {
            hdr.data.h1: exact;
        }
        actions = {
            mix(hdr.data.b1, hdr.data.b2, hdr.data.b3);
        }
    }
    apply {
        std.egress_spec = 2;
        mixes.apply();
        step(1, hdr.data.b4, hdr.data.b1);
    }
}

#include "../include/after.p4"
