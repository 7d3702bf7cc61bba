// typedef names a type anew; type makes a new one, to be cast.
#include "../include/before.p4"

typedef bit<16> vlan_t;
type bit<9> Port;
type vlan_t Zone;

struct headers_t {
    data_t data;
}

struct metadata_t {
    Port port;
    Zone zone;
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action forward(Port to, Zone zone) {
        meta.port = to;
        meta.zone = zone;
    }
    table ports {
        key = {
            meta.zone: exact;
        }
        actions = {
            forward;
            NoAction;
        }
        default_action = NoAction();
    }
    apply {
        vlan_t vlan = hdr.data.h1;
        meta.zone = (Zone)vlan;
        meta.port = (Port)2;
        ports.apply();
        if (meta.zone == (Zone)0xabc) {
            hdr.data.b1 = 1;
        }
        hdr.data.h2 = (vlan_t)meta.zone;
        std.egress_spec = (bit<9>)meta.port;
    }
}

#include "../include/after.p4"
