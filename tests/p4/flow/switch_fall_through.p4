// Labels without a body share the next one.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        switch (hdr.data.d) {
            4:
            200: { hdr.data.e = 1; }
            9: { hdr.data.e = 2; }
        }
    }
}

#include "../include/main.p4"
