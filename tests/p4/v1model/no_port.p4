// A packet that is sent nowhere leaves by port 0.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        hdr.data.b1 = 1;
    }
}

#include "../include/after.p4"
