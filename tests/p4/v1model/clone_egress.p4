// A clone in egress has the headers of egress's end, and goes through egress again.
#include "../include/before.p4"

struct headers_t {
    data_t data;
    data_t more;
}

struct metadata_t {
    @field_list(0)
    bit<8> kept;
    bit<8> lost;
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        meta.kept = 1;
        meta.lost = 2;
    }
}

#define OWN_EGRESS
control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (std.instance_type == 0) {
            meta.kept = 3;
            clone_preserving_field_list(CloneType.E2E, 5, 0);
            hdr.data.b1 = 0x11;
            hdr.more.setValid();
            hdr.more = hdr.data;
            if (hdr.data.b2 == 1) {
                mark_to_drop(std);
            }
        } else {
            hdr.data.b3 = (bit<8>)std.instance_type;
            hdr.data.b4 = (bit<8>)std.egress_port;
            hdr.data.h1 = (bit<16>)meta.kept;
            hdr.data.h2 = (bit<16>)meta.lost;
        }
    }
}

#include "../include/after.p4"
