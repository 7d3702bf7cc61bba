// Clone, digest, multicast and truncation asked for by one packet.
#include "../include/before.p4"

struct told_t {
    bit<32> w1;
}

struct headers_t {
    data_t data;
}

struct metadata_t {
    @field_list(1)
    bit<8> mark;
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        meta.mark = hdr.data.b1;
        hdr.data.b2 = 1;
        clone_preserving_field_list(CloneType.I2E, 3, 1);
        digest<told_t>(0, { hdr.data.w1 });
        std.mcast_grp = 2;
    }
}

#define OWN_EGRESS
control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        hdr.data.b3 = meta.mark;
        hdr.data.b4 = (bit<8>)std.instance_type;
        if (std.egress_rid == 7) {
            truncate(12);
        } else if (std.instance_type == 5) {
            clone(CloneType.E2E, 4);
        }
    }
}

#include "../include/after.p4"
