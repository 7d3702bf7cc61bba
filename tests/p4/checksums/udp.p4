// UDP's checksum over a pseudo header, the header and the payload.
#include "../include/before.p4"

header ip_t {
    bit<32> src;
    bit<32> dst;
    bit<8> protocol;
}

header udp_t {
    bit<16> src;
    bit<16> dst;
    bit<16> length;
    bit<16> checksum;
}

struct headers_t {
    ip_t ip;
    udp_t udp;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ip);
        packet.extract(hdr.udp);
        transition accept;
    }
}

#define OWN_UPDATE
control update_sums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum_with_payload(
            hdr.udp.isValid(),
            { hdr.ip.src, hdr.ip.dst, 8w0, hdr.ip.protocol, hdr.udp.length,
              hdr.udp.src, hdr.udp.dst, hdr.udp.length },
            hdr.udp.checksum, HashAlgorithm.csum16);
    }
}

#include "../include/after.p4"
