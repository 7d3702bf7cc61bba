// @name gives the control plane a name of its own; @hidden keeps an object from it.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    @name(".paint")
    action mark(@name("colour") bit<8> by) {
        hdr.data.b1 = by;
    }
    @hidden
    action secret() {
        hdr.data.b2 = 0x22;
    }
    @id(0x0200abcd)
    @name("acl.painting")
    table marks {
        key = {
            hdr.data.h1: exact @name("flow");
        }
        actions = {
            mark;
        }
    }
    @hidden
    table hidden_one {
        actions = {
            secret;
        }
        const default_action = secret();
    }
    apply {
        std.egress_spec = 2;
        marks.apply();
        hidden_one.apply();
    }
}

#include "../include/after.p4"
