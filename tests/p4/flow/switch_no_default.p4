// A switch without a matching label does nothing.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        switch (hdr.data.c) {
            3: { hdr.data.d = 1; }
        }
        hdr.data.e = 8;
    }
}

#include "../include/main.p4"
