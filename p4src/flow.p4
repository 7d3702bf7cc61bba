// Flow: a number by which all packets of a flow are told from those of others.
//
// Reads:  the IP header or hdr.sunh that hosts wrote, meta.src_port, meta.dst_port.
// Writes: nothing but what it is asked for.

#ifndef FLOW_P4
#define FLOW_P4

#include "headers.p4"

control flow_hash(in headers_t hdr, in metadata_t meta, out bit<32> flow) {
    action hash_ipv4() {
        hash(flow, HashAlgorithm.crc32, 32w0,
             { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, meta.src_port,
               meta.dst_port },
             33w0x100000000);
    }

    action hash_ipv6() {
        hash(flow, HashAlgorithm.crc32, 32w0,
             { hdr.ipv6.src_addr, hdr.ipv6.dst_addr, 4w0 ++ hdr.ipv6.flow_label,
               hdr.ipv6.next_header, meta.src_port, meta.dst_port },
             33w0x100000000);
    }

    action hash_sunh() {
        hash(flow, HashAlgorithm.crc32, 32w0,
             { hdr.sunh.src_addr, hdr.sunh.dst_addr, 4w0 ++ hdr.sunh.flow_label },
             33w0x100000000);
    }

    apply {
        if (hdr.ipv4.isValid()) {
            hash_ipv4();
        } else if (hdr.sunh.isValid()) {
            hash_sunh();
        } else {
            hash_ipv6();
        }
    }
}

#endif
