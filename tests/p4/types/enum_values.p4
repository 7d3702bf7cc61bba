// Enums compare by member.
#include "../include/data.p4"

enum Color { red, green, blue }

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        Color x = hdr.data.a == 1 ? Color.red : Color.blue;
        if (x == Color.red) { hdr.data.d = 1; }
        if (x != Color.red) { hdr.data.d = 2; }
    }
}

#include "../include/main.p4"
