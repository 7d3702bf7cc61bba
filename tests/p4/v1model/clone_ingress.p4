// A clone in ingress is the packet as it came; the original goes on, or not.
#include "../include/before.p4"

struct headers_t {
    data_t data;
}

struct metadata_t {
    @field_list(1)
    bit<16> kept;
    bit<16> lost;
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        meta.kept = 0x1111;
        meta.lost = 0x2222;
        if (hdr.data.b1 == 1) {
            clone(CloneType.I2E, 5);
        } else if (hdr.data.b1 == 2) {
            clone_preserving_field_list(CloneType.I2E, 5, 1);
        } else if (hdr.data.b1 == 3) {
            clone_preserving_field_list(CloneType.I2E, 5, 1);
            mark_to_drop(std);
        } else if (hdr.data.b1 == 4) {
            clone(CloneType.I2E, 6);
        }
        meta.kept = 0x3333;
        hdr.data.b2 = 0xff;
    }
}

#define OWN_EGRESS
control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        hdr.data.b3 = (bit<8>)std.instance_type;
        hdr.data.b4 = (bit<8>)std.egress_port;
        hdr.data.h1 = meta.kept;
        hdr.data.h2 = meta.lost;
    }
}

#include "../include/after.p4"
