// Time goes forward: egress is not before ingress, a packet not before the last one.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<48>>(1) last;

    apply {
        std.egress_spec = 2;
        bit<48> before;
        last.read(before, 0);
        last.write(0, std.ingress_global_timestamp);
        if (before <= std.ingress_global_timestamp) {
            hdr.data.b1 = 1;
        }
    }
}

#define OWN_EGRESS
control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (std.egress_global_timestamp >= std.ingress_global_timestamp) {
            hdr.data.b2 = 1;
        }
        if (std.deq_timedelta < 1000000) {
            hdr.data.b3 = 1;
        }
    }
}

#include "../include/after.p4"
