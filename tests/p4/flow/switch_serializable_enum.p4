// A switch on a serializable enum.
#include "../include/data.p4"

enum bit<8> Kind { four = 4, nine = 9 }

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        switch ((Kind)hdr.data.d) {
            Kind.four: { hdr.data.e = 40; }
            Kind.nine: { hdr.data.e = 90; }
        }
    }
}

#include "../include/main.p4"
