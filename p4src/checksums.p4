// The IPv4 header checksums: checked before ingress, written anew after egress.
//
// Reads:  hdr.ipv4, hdr.outer_ipv4.
// Writes: the checksums of hdr.ipv4 and hdr.outer_ipv4; whether one was wrong, the switch says itself.

#ifndef CHECKSUMS_P4
#define CHECKSUMS_P4

#include "headers.p4"

#define IPV4_SUMMED_FIELDS(ipv4)                                                  \
    { ipv4.version, ipv4.ihl, ipv4.dscp, ipv4.ecn, ipv4.total_len,                \
      ipv4.identification, ipv4.flags, ipv4.frag_offset, ipv4.ttl, ipv4.protocol, \
      ipv4.src_addr, ipv4.dst_addr }

control check_ipv4_checksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(), IPV4_SUMMED_FIELDS(hdr.ipv4),
                        hdr.ipv4.hdr_checksum, HashAlgorithm.csum16);
    }
}

control write_ipv4_checksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), IPV4_SUMMED_FIELDS(hdr.ipv4),
                        hdr.ipv4.hdr_checksum, HashAlgorithm.csum16);
        update_checksum(hdr.outer_ipv4.isValid(), IPV4_SUMMED_FIELDS(hdr.outer_ipv4),
                        hdr.outer_ipv4.hdr_checksum, HashAlgorithm.csum16);
    }
}

#endif
