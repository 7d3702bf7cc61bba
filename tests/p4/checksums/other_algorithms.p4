// update_checksum with the other algorithms.
#include "../include/one_header.p4"

#define OWN_UPDATE
control update_sums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(true, { hdr.data.h1, hdr.data.h2 }, hdr.data.w1, HashAlgorithm.crc32);
        update_checksum(hdr.data.b1 == 1, { hdr.data.h2 }, hdr.data.w2, HashAlgorithm.identity);
    }
}

#include "../include/after.p4"
