// Generic structs and functions, with type arguments given and inferred.
#include "../include/one_header.p4"

struct pair_t<T, U> {
    T first;
    U second;
}

struct around_t<T, U> {
    T first;
    U second;
}

T pick<T>(in bool left, in T a, in T b) {
    if (left) {
        return a;
    }
    return b;
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        pair_t<bit<8>, bit<16>> p = { hdr.data.b1, hdr.data.h1 };
        around_t<bit<16>, pair_t<bit<8>, bit<8>>> q = { p.second, { p.first, hdr.data.b2 } };
        hdr.data.h2 = pick(hdr.data.b3 == 0, q.first, 16w0xffff);
        hdr.data.b4 = pick<bit<8>>(hdr.data.b3 == 1, q.second.first, q.second.second);
    }
}

#include "../include/after.p4"
