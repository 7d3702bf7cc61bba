// The IPv4 header checksum: checked before ingress, written anew after egress.
//
// Writes: standard_metadata.checksum_error, hdr.ipv4.hdr_checksum.

#ifndef CHECKSUMS_P4
#define CHECKSUMS_P4

#include "headers.p4"

#define IPV4_SUMMED_FIELDS                                                               \
    { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_len,   \
      hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.frag_offset, hdr.ipv4.ttl,       \
      hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr }

control check_ipv4_checksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(), IPV4_SUMMED_FIELDS,
                        hdr.ipv4.hdr_checksum, HashAlgorithm.csum16);
    }
}

control write_ipv4_checksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), IPV4_SUMMED_FIELDS,
                        hdr.ipv4.hdr_checksum, HashAlgorithm.csum16);
    }
}

#endif
