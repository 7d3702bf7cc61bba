// Structs: by list, by name, nested, copied, compared, given to and got from functions.
#include "../include/before.p4"

struct point_t {
    bit<8> x;
    bit<8> y;
}

struct line_t {
    point_t from;
    point_t to;
}

struct headers_t {
    data_t data;
}

struct metadata_t {
}

point_t mirrored(in point_t p) {
    return { p.y, p.x };
}

line_t between(in point_t a, in point_t b) {
    line_t line;
    line.from = a;
    line.to = b;
    return line;
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        point_t a = { hdr.data.b1, hdr.data.b2 };
        point_t b = { y = hdr.data.b3, x = hdr.data.b4 };
        line_t line = between(mirrored(a), b);
        hdr.data.w1 = line.from.x ++ line.from.y ++ line.to.x ++ line.to.y;
        if (line.from == line.to) {
            hdr.data.h1 = 0xeeee;
        }
        line = { from = line.to, to = { 1, 2 } };
        hdr.data.w2 = line.from.x ++ line.from.y ++ line.to.x ++ line.to.y;
    }
}

#include "../include/after.p4"
