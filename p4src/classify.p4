// Classify: which priority, and so which queue, a packet travels in.
//
// A tag's PCP counts where `pcp_priorities` knows it, which is how tags are trusted; else the DSCP.
//
// Reads:  hdr.vlan.pcp, the IP header, or hdr.sunh.
// Writes: meta.dscp, meta.priority, standard_metadata.priority (the traffic manager's queue).

#ifndef CLASSIFY_P4
#define CLASSIFY_P4

#include "headers.p4"

control classify(in headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    action set_priority(priority_t priority) {
        meta.priority = priority;
        standard_metadata.priority = priority;
    }

    table dscp_priorities {
        key = { meta.dscp : exact; }
        actions = { set_priority; }
        default_action = set_priority(0);
        size = 64;
    }

    table pcp_priorities {
        key = { hdr.vlan.pcp : exact; }
        actions = { set_priority; NoAction; }
        default_action = NoAction();
        size = 8;
    }

    apply {
        meta.dscp = hdr.ipv4.dscp;
        if (hdr.ipv6.isValid()) {
            meta.dscp = hdr.ipv6.dscp;
        }
        if (hdr.carrier.isValid()) {
            meta.dscp = hdr.carrier.dscp;
        }
        if (hdr.sunh.isValid()) {
            meta.dscp = hdr.sunh.dscp;
        }
        bool told = false;
        if (hdr.vlan.isValid()) {
            told = pcp_priorities.apply().hit;
        }
        if (!told) {
            dscp_priorities.apply();
        }
    }
}

#endif
