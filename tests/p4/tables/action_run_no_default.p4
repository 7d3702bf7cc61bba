// A switch without a default, with tables inside its branches.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action go() {
        hdr.data.b1 = 1;
    }
    action stay() {
        hdr.data.b1 = 2;
    }
    action add(bit<8> value) {
        hdr.data.b2 = hdr.data.b2 + value;
    }
    table choice {
        key = {
            hdr.data.h1: exact;
        }
        actions = {
            go;
            stay;
            NoAction;
        }
        default_action = NoAction();
    }
    table here {
        key = {
            hdr.data.h2: exact;
        }
        actions = {
            add;
        }
        default_action = add(1);
    }
    table there {
        key = {
            hdr.data.h2: exact;
        }
        actions = {
            add;
        }
        default_action = add(0x10);
    }
    apply {
        std.egress_spec = 2;
        switch (choice.apply().action_run) {
            go: {
                there.apply();
            }
            stay: {
                if (here.apply().hit) {
                    hdr.data.b3 = 7;
                }
            }
        }
    }
}

#include "../include/after.p4"
