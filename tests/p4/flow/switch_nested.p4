// A switch inside a switch.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        switch (hdr.data.a) {
            1: {
                switch (hdr.data.b) {
                    2: { hdr.data.d = 12; }
                    default: { hdr.data.d = 10; }
                }
            }
            default: { hdr.data.d = 0; }
        }
    }
}

#include "../include/main.p4"
