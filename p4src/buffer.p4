// The shared buffer: who may use how much of it, in bytes.
//
// One pool is shared by all ports. Every packet is charged, from admission to departure, to the
// queue it came from (ingress port, priority) and to the one it leaves by (egress port, priority).
//
//     lossy     admitted while its egress queue holds less than  reserved + share
//     lossless  admitted while its ingress queue holds less than reserved + share;
//               beyond that into the ingress queue's headroom, and the sender is to be paused;
//               beyond that dropped: the headroom was too small for the link.
//     credited  admitted while its ingress queue holds less than reserved, which is what its sender
//               was granted (credit.p4); beyond that dropped: it sent without credit.
//
// share     of the pool: alpha * free, alpha being a power of two and free what is left of the
//           pool; or a fixed number of bytes (`queue_most`). Never more than what is free. Queues
//           that may lose are those of the port a packet leaves by, which may have a number of its own.
// reserved  what a queue has to itself beside the pool. It is used first, and what is beyond it is
//           given back first.
// headroom  of every lossless queue, beside the pool; if ports share their headroom, all of it
//           together may not exceed `headroom_pool` either. It empties first, whichever packet
//           leaves: it is needed for the next emergency.
// cells     memory comes in cells: a packet takes whole ones, and counts as much.
//
// When a pause begins, where it is to end is written down: at the larger of `xon` and what the
// queue held less `xon_below_xoff`. If `xon_follows`, that moves with the threshold meanwhile: at
// reserved + alpha * free less `xon_below_xoff`.
//
// Reads:  the port, meta.priority, meta.out_port, the packet's length.
// Writes: the registers below; meta.claim, meta.lossless, meta.in_used, meta.in_headroom,
//         meta.out_used, meta.pool_used; meta.drop_reason. pause.p4 reads `congested`.
// Stops:  the queues themselves, and the memory of the packets, belong to the traffic manager,
//         whose own limits must be larger than the pool: what it drops is never released here.
// Always: buffer_pool_used is the sum of buffer_shared, which of a queue is at most what it uses;
//         so whatever profiles become meanwhile, all is zero again when the switch is empty.

#ifndef BUFFER_P4
#define BUFFER_P4

#include "headers.p4"
#include "sizes.p4"

#define QUEUE_INDEX(port, priority) ((bit<32>)((port) ++ (priority)))

register<bytes_t>(QUEUES) buffer_in_used;      // by ingress port and priority, headroom excluded
register<bytes_t>(QUEUES) buffer_in_headroom;  // by ingress port and priority
register<bytes_t>(QUEUES) buffer_out_used;     // by egress port and priority
register<bytes_t>(QUEUES) buffer_shared;       // of buffer_in_used, or if lossy buffer_out_used,
                                               // by the same index: what is from the pool
register<bytes_t>(1)      buffer_pool_used;    // the pool, all together
register<bytes_t>(1)      buffer_headroom_used;    // all headroom together

control buffer_admit(inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    bytes_t pool;
    bytes_t reserved;
    bytes_t most = 0;
    bytes_t headroom = 0;
    bytes_t all_headroom = 0;
    bytes_t hysteresis = 0;
    bytes_t xon_least = 0;
    bytes_t cell;
    bit<40> per_cell;
    bit<4>  alpha;

    // alpha stands for 2^(alpha - 8), and counts unless `queue_most` is given. cell_reciprocal:
    // 2^32 / cell_size, rounded up. A priority's queue_reserved is the same at all ports.
    action lossy(bytes_t pool_size, bytes_t queue_reserved, bit<4> queue_alpha, bytes_t queue_most,
                 bytes_t cell_size, bit<40> cell_reciprocal) {
        pool = pool_size;
        reserved = queue_reserved;
        alpha = queue_alpha;
        most = queue_most;
        cell = cell_size;
        per_cell = cell_reciprocal;
    }

    action lossless(bytes_t pool_size, bytes_t queue_reserved, bit<4> queue_alpha,
                    bytes_t queue_most, bytes_t cell_size, bit<40> cell_reciprocal,
                    bytes_t queue_headroom, bytes_t headroom_pool, bytes_t xon,
                    bytes_t xon_below_xoff, bit<1> xon_follows) {
        pool = pool_size;
        reserved = queue_reserved;
        alpha = queue_alpha;
        most = queue_most;
        cell = cell_size;
        per_cell = cell_reciprocal;
        headroom = queue_headroom;
        all_headroom = headroom_pool;
        xon_least = xon;
        hysteresis = xon_below_xoff;
        meta.lossless = true;
        meta.claim.xon = { xon_follows, pool_size, queue_reserved, queue_alpha, xon_below_xoff, xon };
    }

    // Lossless too. `grant_least`: bytes that are worth a word to the sender.
    action credited(bytes_t pool_size, bytes_t queue_credit, bytes_t cell_size,
                    bit<40> cell_reciprocal, bytes_t grant_least) {
        pool = pool_size;
        reserved = queue_credit;
        alpha = 0;
        most = 1;               // of the pool, as 0 would mean alpha's share: no packet is so small
        cell = cell_size;
        per_cell = cell_reciprocal;
        meta.lossless = true;
        meta.claim.credited = true;
        meta.claim.xon.least = grant_least;
    }

    table buffer_profiles {
        key = {
            standard_metadata.ingress_port : exact;
            meta.priority                  : exact;
        }
        actions = { lossy; lossless; credited; }
        default_action = lossy(0xFFFFFFFF, 0, 8, 0, 1, 0x100000000);
        size = QUEUES;
    }

    // What one queue that may lose may take, where it leaves by a port that is not like the others.
    action at_most(bytes_t queue_most) {
        most = queue_most;
    }

    table queue_limits {
        key = {
            meta.out_port : exact;
            meta.priority : exact;
        }
        actions = { at_most; NoAction; }
        default_action = NoAction();
        size = QUEUES;
    }

    // One action, without a branch: the behavioural model locks the registers an action names for
    // as long as it runs, so that ports served by different threads keep one account.
    action charge() {
        bytes_t length = standard_metadata.packet_length;
        bytes_t size = (bytes_t)(((bit<64>)(length + cell - 1) * (bit<64>)per_cell) >> 32) * cell;
        bit<32> in_queue = QUEUE_INDEX(standard_metadata.ingress_port, meta.priority);
        bit<32> out_queue = QUEUE_INDEX(meta.out_port, meta.priority);
        bit<32> queue = meta.lossless ? in_queue : out_queue;

        bytes_t in_used;
        bytes_t in_headroom;
        bytes_t out_used;
        bytes_t shared;
        bytes_t pool_used;
        bytes_t headroom_used;
        buffer_in_used.read(in_used, in_queue);
        buffer_in_headroom.read(in_headroom, in_queue);
        buffer_out_used.read(out_used, out_queue);
        buffer_shared.read(shared, queue);
        buffer_pool_used.read(pool_used, 0);
        buffer_headroom_used.read(headroom_used, 0);

        bytes_t free = pool |-| pool_used;
        bit<48> share = most != 0 ? (bit<48>)most : ((bit<48>)free << alpha) >> 8;
        bytes_t used = meta.lossless ? in_used : out_used;
        bytes_t beyond = size |-| (reserved |-| (used |-| shared));    // what is reserved for it
        bool fits_pool = (bit<48>)(used + size) <= (bit<48>)reserved + share && beyond <= free;
        bool fits_headroom = in_headroom + size <= headroom &&    // never, if there is none
            headroom_used + size <= all_headroom;
        bytes_t to_pool = fits_pool ? size : 0;
        bytes_t to_shared = fits_pool ? beyond : 0;
        bytes_t to_headroom = !fits_pool && fits_headroom ? size : 0;
        bytes_t admitted = to_pool + to_headroom;

        buffer_in_used.write(in_queue, in_used + to_pool);
        buffer_in_headroom.write(in_queue, in_headroom + to_headroom);
        buffer_out_used.write(out_queue, out_used + admitted);
        buffer_shared.write(queue, shared + to_shared);
        buffer_pool_used.write(0, pool_used + to_shared);
        buffer_headroom_used.write(0, headroom_used + to_headroom);

        bytes_t resume_at = in_used |-| hysteresis;
        meta.claim.size = admitted;
        meta.claim.in_port = standard_metadata.ingress_port;
        meta.claim.congested = meta.lossless && !fits_pool;
        meta.claim.resume_at = resume_at > xon_least ? resume_at : xon_least;
    }

    apply {
        buffer_profiles.apply();
        if (!meta.lossless) {
            queue_limits.apply();
        }
        charge();
        if (meta.claim.size == 0) {
            meta.drop_reason = meta.lossless ? drop_reason_t.HEADROOM_FULL
                                             : drop_reason_t.BUFFER_FULL;
            if (meta.claim.credited) {
                meta.drop_reason = drop_reason_t.NO_CREDIT;
            }
        }
    }
}

control buffer_release(inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action credit() {
        bit<32> in_queue = QUEUE_INDEX(meta.claim.in_port, meta.priority);
        bit<32> out_queue = QUEUE_INDEX(standard_metadata.egress_port, meta.priority);

        bit<32> queue = meta.lossless ? in_queue : out_queue;

        bytes_t in_used;
        bytes_t in_headroom;
        bytes_t out_used;
        bytes_t shared;
        bytes_t pool_used;
        bytes_t headroom_used;
        buffer_in_used.read(in_used, in_queue);
        buffer_in_headroom.read(in_headroom, in_queue);
        buffer_out_used.read(out_used, out_queue);
        buffer_shared.read(shared, queue);
        buffer_pool_used.read(pool_used, 0);
        buffer_headroom_used.read(headroom_used, 0);

        bytes_t from_headroom = in_headroom < meta.claim.size ? in_headroom : meta.claim.size;
        bytes_t from_pool = meta.claim.size - from_headroom;
        bytes_t from_shared = shared < from_pool ? shared : from_pool;

        buffer_in_used.write(in_queue, in_used - from_pool);
        buffer_in_headroom.write(in_queue, in_headroom - from_headroom);
        buffer_out_used.write(out_queue, out_used - meta.claim.size);
        buffer_shared.write(queue, shared - from_shared);
        buffer_pool_used.write(0, pool_used - from_shared);
        buffer_headroom_used.write(0, headroom_used - from_headroom);

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
