// Log messages, with and without values, leave the packet alone.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        log_msg("plain");
        log_msg("values {} and {}", { hdr.data.a, hdr.data.d });
    }
}

#include "../include/main.p4"
