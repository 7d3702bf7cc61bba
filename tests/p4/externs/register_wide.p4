// Registers of 128, 48, 9 and 1 bits.
#include "../include/before.p4"

struct headers_t {
    data_t data;
}

struct metadata_t {
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<128>>(2) wide;
    register<bit<48>>(2) times;
    register<bit<9>>(2) ports;
    register<bit<1>>(2) flags;

    apply {
        std.egress_spec = 2;
        bit<128> last;
        wide.read(last, 0);
        wide.write(0, hdr.data.w1 ++ hdr.data.w2 ++ last[127:64]);
        bit<9> port;
        ports.read(port, 1);
        ports.write(1, std.ingress_port + port);
        bit<1> flag;
        flags.read(flag, 1);
        flags.write(1, ~flag);
        bit<48> time;
        times.read(time, 0);
        times.write(0, time - 1);
        hdr.data.w1 = last[63:32];
        hdr.data.w2 = last[31:0];
        hdr.data.h1 = (bit<16>)port;
        hdr.data.b1 = (bit<8>)flag;
        hdr.data.h2 = time[47:32];
    }
}

#include "../include/after.p4"
