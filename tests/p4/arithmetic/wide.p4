// Numbers of 96, 128 and 200 bits: sums, products, shifts, comparisons.
#include "../include/before.p4"

header wide_t {
    bit<128> a;
    bit<128> b;
    bit<8> op;
}

struct headers_t {
    wide_t wide;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.wide);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bit<128> a = hdr.wide.a;
        bit<128> b = hdr.wide.b;
        if (hdr.wide.op == 0) {
            hdr.wide.a = a + b;
        } else if (hdr.wide.op == 1) {
            hdr.wide.a = a - b;
        } else if (hdr.wide.op == 2) {
            hdr.wide.a = a * b;
        } else if (hdr.wide.op == 3) {
            hdr.wide.a = a << b[7:0];
        } else if (hdr.wide.op == 4) {
            hdr.wide.a = a >> b[7:0];
        } else if (hdr.wide.op == 5) {
            hdr.wide.a = (a & b) | (~a & ~b);
        } else if (hdr.wide.op == 6) {
            if (a < b) {
                hdr.wide.a = b;
            }
        } else if (hdr.wide.op == 7) {
            bit<200> c = (bit<200>)a << 72;
            c = c | (bit<200>)b;
            hdr.wide.a = c[199:72];
            hdr.wide.b = (bit<128>)c;
        } else if (hdr.wide.op == 8) {
            bit<96> c = a[111:16];
            hdr.wide.b = (bit<128>)(c + 1);
        } else if (hdr.wide.op == 9) {
            hdr.wide.a = a |+| b;
            hdr.wide.b = a |-| b;
        }
    }
}

#include "../include/after.p4"
