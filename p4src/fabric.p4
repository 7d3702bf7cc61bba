// The fabric: one program for every switch of the Clos, leaf or spine, told apart only by tables.
//
// This file is the block diagram. Each block lives in a file of its own name and says there what
// it reads, what it writes and where it stops.

#include <core.p4>
#include <v1model.p4>

#include "parser.p4"
#include "checksums.p4"
#include "route.p4"
#include "path.p4"
#include "forward.p4"
#include "account.p4"

control fabric_ingress(inout headers_t hdr, inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    account_received() received;
    route() routing;
    path() paths;
    forward() forwarding;
    account_dropped() drops;

    apply {
        received.apply(standard_metadata);

        if (standard_metadata.parser_error != error.NoError) {
            meta.drop_reason = drop_reason_t.MALFORMED;
        } else if (!hdr.ipv4.isValid()) {
            meta.drop_reason = drop_reason_t.NOT_IPV4;
        } else if (standard_metadata.checksum_error == 1) {
            meta.drop_reason = drop_reason_t.BAD_CHECKSUM;
        } else {
            routing.apply(hdr, meta);
            if (meta.group != 0) {
                paths.apply(hdr, meta);
            }
        }

        if (meta.drop_reason == drop_reason_t.NONE) {
            forwarding.apply(hdr, meta, standard_metadata);
        }
        if (meta.drop_reason != drop_reason_t.NONE) {
            drops.apply(meta, standard_metadata);
        }
    }
}

control fabric_egress(inout headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    account_sent() sent;

    apply {
        sent.apply(standard_metadata);
    }
}

V1Switch(fabric_parser(), check_ipv4_checksum(), fabric_ingress(), fabric_egress(),
         write_ipv4_checksum(), fabric_deparser()) main;
