// Messages and assertions that hold change nothing.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        log_msg("a packet came");
        log_msg("w1 = {}, h1 = {}", { hdr.data.w1, hdr.data.h1 });
        assert(hdr.data.isValid());
        assume(hdr.data.b1 < 200);
        assert(hdr.data.b1 + 1 > hdr.data.b1);
        hdr.data.b2 = 1;
    }
}

#include "../include/after.p4"
