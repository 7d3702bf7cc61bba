// switch on numbers: several labels for one block, no way from one block into the next.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        switch (hdr.data.h1 + 1) {
            1: {
                hdr.data.b1 = 1;
            }
            16w2:
            3: {
                hdr.data.b1 = 23;
                switch (hdr.data.b2) {
                    0: {
                        hdr.data.b3 = 0x30;
                    }
                    1: {
                        return;
                    }
                    default: {
                        hdr.data.b3 = 0x3d;
                    }
                }
            }
            4: {
            }
            default: {
                hdr.data.b1 = 0xdd;
            }
        }
        hdr.data.b4 = 0xff;
    }
}

#include "../include/after.p4"
