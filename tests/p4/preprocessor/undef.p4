// A macro taken back.
#define GONE
#undef GONE
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        #ifdef GONE
        hdr.data.d = 1;
        #else
        hdr.data.d = 2;
        #endif
    }
}

#include "../include/main.p4"
