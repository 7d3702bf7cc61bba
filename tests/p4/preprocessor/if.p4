// Conditional sections.
#define VERSION 3
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        #if VERSION >= 3 && !defined(OLD)
        hdr.data.d = 1;
        #elif VERSION == 2
        hdr.data.d = 2;
        #else
        hdr.data.d = 3;
        #endif
        #ifdef NOTHING
        hdr.data.e = 1;
        #endif
        #ifndef NOTHING
        hdr.data.e = 2;
        #endif
    }
}

#include "../include/main.p4"
