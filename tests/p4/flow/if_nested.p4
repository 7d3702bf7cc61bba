// An else belongs to the nearest if.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.data.d > 3)
            if (hdr.data.e > 6)
                hdr.data.c = 1;
            else
                hdr.data.c = 2;
    }
}

#include "../include/main.p4"
