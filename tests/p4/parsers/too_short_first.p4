// A packet too short for the very first header leaves as it came.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (!hdr.data.isValid() && std.parser_error != error.NoError) {
            std.egress_spec = 3;
        }
    }
}

#include "../include/after.p4"
