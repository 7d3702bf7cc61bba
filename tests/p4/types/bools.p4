// bool: operators, precedence, metadata, parameters.
#include "../include/before.p4"

struct headers_t {
    data_t data;
}

struct metadata_t {
    bool kept;
}

bool either(in bool a, in bool b) {
    return (a || b) && !(a && b);
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bool a = hdr.data.b1 != 0;
        bool b = hdr.data.b2 != 0;
        if (a && b || !a && !b) {
            hdr.data.b3 = 1;
        }
        meta.kept = either(a, b);
        if (a == b) {
            hdr.data.b4 = 4;
        }
    }
}

#define OWN_EGRESS
control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (meta.kept) {
            hdr.data.b3 = 9;
        }
    }
}

#include "../include/after.p4"
