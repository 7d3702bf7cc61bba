// CONGA: leaves tell each other how busy the ways between them are.
//
// A small header travels between Ethernet and IPv4 from the first leaf to the last. On its way
// each switch raises the metric to that of the link it is about to take, so that it arrives
// holding the busiest. The far leaf notes it, by leaf and path, and tells it back in the header
// of whatever goes the other way, one path after another: as many as were seen in use, since how
// many ways lead there is for the other leaf to know. What was not heard of for a while counts
// as idle: otherwise a way once busy would never be tried again. path.p4 chooses by what is known.
//
// Reads:  hdr.conga, meta.member, meta.far_leaf, meta.utilisation, the clock.
// Writes: the registers below, hdr.conga, hdr.ethernet.ether_type.

#ifndef CONGA_P4
#define CONGA_P4

#include "headers.p4"
#include "sizes.p4"

#define PATH_INDEX(leaf, path) ((bit<32>)((leaf) ++ (bit<6>)(path)))

register<metric_t>(LEAF_PATHS) conga_to;           // by leaf and path: how busy the way there is,
@times register<tick_t>(LEAF_PATHS)   conga_to_time;      // and when that was heard
register<metric_t>(LEAF_PATHS) conga_from;         // by leaf and path: how busy the way here is,
@times register<tick_t>(LEAF_PATHS)   conga_from_time;    // and when that was seen
register<bit<8>>(LEAVES)       conga_paths;        // by leaf: how many ways it was seen to use
register<bit<8>>(LEAVES)       conga_next;         // by leaf: the path to tell it of next

// Ingress of the last leaf.
control conga_arrive(inout headers_t hdr, in standard_metadata_t standard_metadata) {
    action learn() {
        tick_t now = standard_metadata.ingress_global_timestamp;
        bit<32> from = PATH_INDEX(hdr.conga.leaf, hdr.conga.path);
        bit<32> to = PATH_INDEX(hdr.conga.leaf, hdr.conga.feedback_path);
        conga_from.write(from, hdr.conga.metric);
        conga_from_time.write(from, now);
        conga_to.write(to, hdr.conga.feedback_metric);
        conga_to_time.write(to, now);
        bit<8> paths;
        conga_paths.read(paths, (bit<32>)hdr.conga.leaf);
        paths = hdr.conga.path < paths ? paths : hdr.conga.path + 1;
        conga_paths.write((bit<32>)hdr.conga.leaf, paths);
        hdr.ethernet.ether_type = hdr.conga.ether_type;
        hdr.conga.setInvalid();
    }

    // Leaves learn; switches between them let the header pass.
    table conga_ends {
        actions = { learn; NoAction; }
        default_action = NoAction();
    }

    apply {
        conga_ends.apply();
    }
}

// Ingress of the first leaf, once the path is chosen.
control conga_depart(inout headers_t hdr, in metadata_t meta, in leaf_t own_leaf, in tick_t age,
                     in standard_metadata_t standard_metadata) {
    action tell() {
        tick_t now = standard_metadata.ingress_global_timestamp;
        bit<8> path;
        bit<8> paths;
        conga_next.read(path, (bit<32>)meta.far_leaf);
        conga_paths.read(paths, (bit<32>)meta.far_leaf);
        conga_next.write((bit<32>)meta.far_leaf, path + 1 < paths ? path + 1 : 0);
        bit<32> from = PATH_INDEX(meta.far_leaf, path);
        metric_t metric;
        tick_t seen;
        conga_from.read(metric, from);
        conga_from_time.read(seen, from);
        hdr.conga.setValid();
        hdr.conga.leaf = own_leaf;
        hdr.conga.path = (bit<8>)meta.member;
        hdr.conga.metric = 0;
        hdr.conga.feedback_path = path;
        hdr.conga.feedback_metric = now - seen < age ? metric : 0;
        hdr.conga.ether_type = hdr.ethernet.ether_type;
        hdr.ethernet.ether_type = ETHERTYPE_CONGA;
    }

    apply {
        tell();
    }
}

// Egress of every switch on the way.
control conga_note(inout headers_t hdr, in metadata_t meta) {
    apply {
        metric_t metric = meta.utilisation >= 0xE000 ? 7 : (metric_t)(meta.utilisation >> 13);
        if (metric > hdr.conga.metric) {
            hdr.conga.metric = metric;
        }
    }
}

#endif
