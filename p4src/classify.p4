// Classify: which priority, and so which queue, a packet travels in.
//
// Reads:  hdr.ipv4.dscp.
// Writes: meta.priority, standard_metadata.priority (the traffic manager's queue).

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
        key = { hdr.ipv4.dscp : exact; }
        actions = { set_priority; }
        default_action = set_priority(0);
        size = 64;
    }

    apply {
        dscp_priorities.apply();
    }
}

#endif
