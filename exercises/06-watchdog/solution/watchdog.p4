// The watchdog: a queue that is paused and does not move for too long is let go.

struct metadata_t {
    bit<48> patience;      // how long a paused queue may stand still
    bit<48> begun;
    bit<48> moved;
}

#include "net.p4"

register<bit<48>>(512) paused_at;     // by port: when its neighbour told us to stop; 0: it did not
register<bit<48>>(512) moved_at;      // by port: when something last left by it
counter(512, CounterType.packets) given_up;

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    action forward(bit<9> port) {
        standard_metadata.egress_spec = port;
    }

    table routes {
        key = { hdr.ipv4.dst_addr : exact; }
        actions = { forward; }
        default_action = forward(511);
        size = 64;
    }

    action waits(bit<48> patience) {
        meta.patience = patience;
    }

    table watchdog {
        actions = { waits; }
        default_action = waits(0);
    }

    apply {
        bit<48> now = standard_metadata.ingress_global_timestamp;
        watchdog.apply();
        if (hdr.pfc.isValid()) {
            // Our neighbour at this port says that we may not send there, or that we may again.
            bit<32> port = (bit<32>)standard_metadata.ingress_port;
            paused_at.read(meta.begun, port);
            if (hdr.pfc.timer3 == 0) {
                paused_at.write(port, 0);
            } else if (meta.begun == 0) {
                paused_at.write(port, now);
            }
            mark_to_drop(standard_metadata);
        } else {
            routes.apply();
            bit<32> port = (bit<32>)standard_metadata.egress_spec;
            paused_at.read(meta.begun, port);
            moved_at.read(meta.moved, port);
            bit<48> since = meta.moved > meta.begun ? meta.moved : meta.begun;
            if (meta.begun != 0 && now - since > meta.patience) {
                given_up.count(port);
                mark_to_drop(standard_metadata);
            }
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {
        moved_at.write((bit<32>)standard_metadata.egress_port,
                       standard_metadata.egress_global_timestamp);
    }
}

NET_SWITCH(ingress, egress)
