// The shared buffer: who may use how much of it, in bytes.
//
// One pool is shared by all ports. Every packet is charged, from admission to departure, to the
// queue it came from (ingress port, priority) and to the one it leaves by (egress port, priority).
//
//     lossy     admitted while its egress queue holds less than  reserved + alpha * free
//     lossless  admitted while its ingress queue holds less than reserved + alpha * free;
//               beyond that into the ingress queue's headroom, and the sender is to be paused;
//               beyond that dropped: the headroom was too small for the link.
//
// alpha is a power of two, free is what is left of the pool; if alpha is more than 1, a queue may
// still not take more than what is free. Headroom is not part of the pool.
//
// Reads:  meta.priority, meta.out_port, the packet's length.
// Writes: the registers below, meta.claim, meta.drop_reason; pause.p4 reads `congested`.
// Stops:  the queues themselves, and the memory of the packets, belong to the traffic manager,
//         whose own limits must be larger than the pool: what it drops is never released here.

#ifndef BUFFER_P4
#define BUFFER_P4

#include "headers.p4"
#include "sizes.p4"

#define QUEUE_INDEX(port, priority) ((bit<32>)((port) ++ (priority)))

register<bytes_t>(QUEUES) buffer_in_used;      // by ingress port and priority, headroom excluded
register<bytes_t>(QUEUES) buffer_in_headroom;  // by ingress port and priority
register<bytes_t>(QUEUES) buffer_out_used;     // by egress port and priority
register<bytes_t>(1)      buffer_pool_used;    // the pool, all together

control buffer_admit(inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    bytes_t pool;
    bytes_t reserved;
    bytes_t headroom;
    bytes_t hysteresis;
    bit<4>  alpha;

    // alpha stands for 2^(alpha - 8).
    action lossy(bytes_t pool_size, bytes_t queue_reserved, bit<4> queue_alpha) {
        pool = pool_size;
        reserved = queue_reserved;
        alpha = queue_alpha;
        headroom = 0;
        hysteresis = 0;
    }

    action lossless(bytes_t pool_size, bytes_t queue_reserved, bit<4> queue_alpha,
                    bytes_t queue_headroom, bytes_t xon_below_xoff) {
        pool = pool_size;
        reserved = queue_reserved;
        alpha = queue_alpha;
        headroom = queue_headroom;
        hysteresis = xon_below_xoff;
        meta.lossless = true;
    }

    table buffer_profiles {
        key = {
            standard_metadata.ingress_port : exact;
            meta.priority                  : exact;
        }
        actions = { lossy; lossless; }
        default_action = lossy(0xFFFFFFFF, 0, 8);
        size = QUEUES;
    }

    // One action, without a branch: the behavioural model locks the registers an action names for
    // as long as it runs, so that ports served by different threads keep one account.
    action charge() {
        bytes_t size = standard_metadata.packet_length;
        bit<32> in_queue = QUEUE_INDEX(standard_metadata.ingress_port, meta.priority);
        bit<32> out_queue = QUEUE_INDEX(meta.out_port, meta.priority);

        bytes_t in_used;
        bytes_t in_headroom;
        bytes_t out_used;
        bytes_t pool_used;
        buffer_in_used.read(in_used, in_queue);
        buffer_in_headroom.read(in_headroom, in_queue);
        buffer_out_used.read(out_used, out_queue);
        buffer_pool_used.read(pool_used, 0);

        bytes_t free = pool |-| pool_used;
        bit<48> limit = (bit<48>)reserved + (((bit<48>)free << alpha) >> 8);
        bytes_t used = meta.lossless ? in_used : out_used;
        bytes_t own = used > reserved ? used : reserved;
        bool fits_pool = (bit<48>)(used + size) <= limit && used + size <= own |+| free;
        bool fits_headroom = in_headroom + size <= headroom;    // never, if there is none
        bytes_t to_pool = fits_pool ? size : 0;
        bytes_t to_headroom = !fits_pool && fits_headroom ? size : 0;
        bytes_t admitted = to_pool + to_headroom;

        buffer_in_used.write(in_queue, in_used + to_pool);
        buffer_in_headroom.write(in_queue, in_headroom + to_headroom);
        buffer_out_used.write(out_queue, out_used + admitted);
        buffer_pool_used.write(0, pool_used + to_pool);

        meta.claim.size = admitted;
        meta.claim.in_port = standard_metadata.ingress_port;
        meta.claim.congested = meta.lossless && !fits_pool;
        meta.claim.resume_at = in_used |-| hysteresis;
    }

    apply {
        buffer_profiles.apply();
        charge();
        if (meta.claim.size == 0) {
            meta.drop_reason = meta.lossless ? drop_reason_t.HEADROOM_FULL
                                             : drop_reason_t.BUFFER_FULL;
        }
    }
}

control buffer_release(inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action credit() {
        bit<32> in_queue = QUEUE_INDEX(meta.claim.in_port, meta.priority);
        bit<32> out_queue = QUEUE_INDEX(standard_metadata.egress_port, meta.priority);

        bytes_t in_used;
        bytes_t in_headroom;
        bytes_t out_used;
        bytes_t pool_used;
        buffer_in_used.read(in_used, in_queue);
        buffer_in_headroom.read(in_headroom, in_queue);
        buffer_out_used.read(out_used, out_queue);
        buffer_pool_used.read(pool_used, 0);

        // Headroom empties first, whichever packet leaves: it is needed for the next emergency.
        bytes_t from_headroom = in_headroom < meta.claim.size ? in_headroom : meta.claim.size;
        bytes_t from_pool = meta.claim.size - from_headroom;

        buffer_in_used.write(in_queue, in_used - from_pool);
        buffer_in_headroom.write(in_queue, in_headroom - from_headroom);
        buffer_out_used.write(out_queue, out_used - meta.claim.size);
        buffer_pool_used.write(0, pool_used - from_pool);

        meta.in_used = in_used - from_pool;
        meta.in_headroom = in_headroom - from_headroom;
        meta.out_used = out_used;
        meta.pool_used = pool_used;
    }

    apply {
        credit();
    }
}

#endif
