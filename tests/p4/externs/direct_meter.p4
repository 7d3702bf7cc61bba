// A direct meter without rates says green, for a hit and for a miss.
#include "../include/before.p4"

struct headers_t {
    data_t data;
}

struct metadata_t {
    bit<8> colour;
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    direct_meter<bit<8>>(MeterType.packets) rates;

    action mark() {
        rates.read(meta.colour);
        hdr.data.b2 = 1;
    }
    action pass() {
        rates.read(meta.colour);
    }
    table flows {
        key = {
            hdr.data.b1: exact;
        }
        actions = {
            mark;
            pass;
        }
        default_action = pass();
        meters = rates;
    }
    apply {
        std.egress_spec = 2;
        meta.colour = 7;
        flows.apply();
        hdr.data.b3 = meta.colour;
    }
}

#include "../include/after.p4"
