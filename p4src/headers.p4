// What a packet is made of, and what a switch notes about it on its way through.

#ifndef HEADERS_P4
#define HEADERS_P4

#include "types.p4"

header ethernet_t {
    mac_t   dst_addr;
    mac_t   src_addr;
    bit<16> ether_type;
}

// An 802.1Qbb pause frame after its Ethernet header. The padding makes it 60 bytes on the wire.
header pfc_t {
    bit<16>  opcode;
    bit<8>   reserved;
    bit<8>   classes;      // bit i: timer i counts
    bit<16>  timer0;
    bit<16>  timer1;
    bit<16>  timer2;
    bit<16>  timer3;
    bit<16>  timer4;
    bit<16>  timer5;
    bit<16>  timer6;
    bit<16>  timer7;
    bit<208> padding;
}

// Word of credits (credit.p4), a frame of MAC control. The padding makes it 60 bytes on the wire.
header credit_t {
    bit<16>  opcode;
    bit<24>  oui;
    bit<8>   kind;
    bit<8>   priority;           // whose credits
    bit<32>  bytes;              // a count that goes round at 2^32
    bit<32>  waits;              // of who asks: how often it waited for credits,
    tick_t   waited;             // for how long,
    bit<64>  replayed;           // and what its link had to send again meanwhile
    bit<136> padding;
}

// Between Ethernet and IP, from a packet's first leaf to its last (conga.p4).
header conga_t {
    leaf_t   leaf;               // where it comes from
    bit<8>   path;               // which of that leaf's ways it took
    metric_t metric;             // the busiest link on that way so far
    bit<8>   feedback_path;      // one of the ways from the leaf it goes to,
    metric_t feedback_metric;    // and how busy that one was lately
    bit<16>  ether_type;         // of what follows
}

// An 802.1Q tag. Whoever set it, it stays on the packet.
header vlan_t {
    bit<3>  pcp;
    bit<1>  drop_eligible;
    bit<12> id;
    bit<16> ether_type;          // of what follows
}

// CSIG's tag after its EtherType, compact (docs/csig.md),
header csig_t {
    bit<3>  type;                // the signal asked for
    bit<1>  do_not_update;       // a switch cut the packet
    bit<5>  signal;              // the bucket of the worst hop
    bit<7>  locator;             // and where that is; 0: no hop put itself in
    bit<16> ether_type;          // of what follows
}

// and wide.
header csig_wide_t {
    bit<16> locator;
    bit<4>  type;
    bit<20> signal;
    bit<1>  do_not_update;
    bit<7>  reserved;
    bit<16> ether_type;          // of what follows
}

header ipv4_t {
    bit<4>      version;
    bit<4>      ihl;
    bit<6>      dscp;
    bit<2>      ecn;
    bit<16>     total_len;
    bit<16>     identification;
    bit<3>      flags;
    bit<13>     frag_offset;
    bit<8>      ttl;
    bit<8>      protocol;
    bit<16>     hdr_checksum;
    ipv4_addr_t src_addr;
    ipv4_addr_t dst_addr;
}

header ipv6_t {
    bit<4>      version;
    bit<6>      dscp;
    bit<2>      ecn;
    bit<20>     flow_label;
    bit<16>     payload_len;
    bit<8>      next_header;
    bit<8>      hop_limit;
    ipv6_addr_t src_addr;
    ipv6_addr_t dst_addr;
}

// In place of IP (sunh.p4), after draft-herbert-sunh.
header sunh_t {
    bit<6>  dscp;
    bit<2>  ecn;
    bit<8>  next_header;
    bit<4>  hop_limit;
    bit<12> flow_label;
    bit<16> src_addr;
    bit<16> dst_addr;
}

// A segment routing header, and the segments behind it, the last to come first.
header srh_t {
    bit<8>  next_header;
    bit<8>  length;              // 8-byte words after the first
    bit<8>  routing_type;        // 4
    bit<8>  segments_left;
    bit<8>  last_entry;
    bit<8>  flags;
    bit<16> tag;
}

header segment_t {
    ipv6_addr_t sids;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

header vxlan_t {
    bit<8>  flags;
    bit<24> reserved;
    bit<24> vni;
    bit<8>  reserved2;
}

// Let what stands before IP, tags or Ethernet, say what now follows.
#define NAME_NETWORK(type)                                     \
    if (hdr.csig.isValid()) {                                  \
        hdr.csig.ether_type = type;                            \
    } else if (hdr.csig_wide.isValid()) {                      \
        hdr.csig_wide.ether_type = type;                       \
    } else if (hdr.vlan.isValid()) {                           \
        hdr.vlan.ether_type = type;                            \
    } else if (hdr.conga.isValid()) {                          \
        hdr.conga.ether_type = type;                           \
    } else {                                                   \
        hdr.ethernet.ether_type = type;                        \
    }

// In an action, which cannot ask: of the header that a packet does not have nothing is sent.
#define LENGTHEN(bytes)                                        \
    hdr.udp.length = hdr.udp.length + (bytes);                 \
    hdr.ipv4.total_len = hdr.ipv4.total_len + (bytes);         \
    hdr.ipv6.payload_len = hdr.ipv6.payload_len + (bytes);     \
    hdr.carrier.payload_len = hdr.carrier.payload_len + (bytes);

// RoCEv2's transport header, of what is to become a notification,
header bth_t {
    bit<8>  opcode;
    bit<8>  flags;               // solicited event, migration, pad, version
    bit<16> partition;
    bit<8>  congestion;          // FECN, BECN
    bit<24> queue_pair;
    bit<8>  ack;
    bit<24> psn;
}

// and what then follows it (notify.p4).
header notice_t {
    bit<128> address;            // whose queue pair that is
    bit<32>  icrc;
}

#ifdef INC
// A packet of a collective, behind UDP (inc.p4),
header inc_t {
    inc_kind_t kind;
    bit<8>  flags;               // INC_WITH_DATA: a vector follows
    bit<16> job;
    bit<32> chunk;               // from 1 on, as long as the job lasts
    bit<16> owner;               // the member to whom the result's data goes, or INC_EVERYBODY
    bit<16> member;              // whose part it was; of a sum any whose part is in it
    bit<8>  exponent;            // hosts' concern: the largest of all parts comes back
    bit<24> reserved;
}

// and 256 numbers of 32 bits.
typedef bit<2048> lanes_t;

header vector_t {
    lanes_t a;
    lanes_t b;
    lanes_t c;
    lanes_t d;
}
#endif

// INT-MD v2.1: the shim after UDP, and the metadata header.
header int_head_t {
    bit<4>  type;                // 1: INT-MD
    bit<2>  npt;                 // 1: `original_port` is what UDP's destination port was
    bit<2>  reserved;
    bit<8>  length;              // words after the shim
    bit<16> original_port;
    bit<4>  version;             // 2
    bit<1>  discard;             // the packet is a copy for the sink only
    bit<1>  hops_exceeded;
    bit<1>  mtu_exceeded;
    bit<12> reserved2;
    bit<5>  hop_words;           // that each hop adds
    bit<8>  hops_left;
    bit<16> instructions;
    bit<16> domain;
    bit<16> domain_instructions;
    bit<16> domain_flags;
}

// What this hop adds, in the order of the instructions' bits.
header int_node_t    { bit<32> node; }
header int_ports_t   { bit<16> ingress; bit<16> egress; }
header int_latency_t { bit<32> ticks; }
header int_queue_t   { bit<8>  queue; bit<24> occupancy; }
header int_time_t    { bit<64> ticks; }
header int_ports2_t  { bit<32> ingress; bit<32> egress; }
header int_load_t    { bit<32> utilisation; }    // of the link, in 1/65536
header int_buffer_t  { bit<8>  buffer; bit<24> occupancy; }
header int_none_t    { bit<32> ones; }           // what this switch cannot tell

// The same of our domain's instructions. Hops add their links' numbers to `domain_flags`.
header int_rate_t    { bit<32> mbps; }           // of the link
header int_left_t    { bit<32> ns; }             // when the packet begins to leave, modulo 2^32
header int_sent_t    { bit<32> bytes; }          // that had left by this link by then, modulo 2^32

// What the hops before added; unchanged here.
header int_stack_t {
    varbit<1920> words;
}

// IOAM's trace: IPv6's hop-by-hop options with nothing but it (ioam.p4).
header ioam_t {
    bit<8>  next_header;
    bit<8>  length;              // 8-byte words after the first
    bit<16> padding;             // so that the trace begins at a multiple of four
    bit<8>  option;              // 0x31
    bit<8>  option_length;
    bit<8>  reserved;
    bit<8>  kind;                // 0: pre-allocated
    bit<16> namespace;
    bit<5>  node_words;          // that each hop writes
    bit<1>  overflow;
    bit<3>  flags;
    bit<7>  words_left;
    bit<24> trace;               // its type: what each hop writes
    bit<8>  reserved2;
}

// Room for hops to come, what is this one's, and what others wrote;
header ioam_words_t {
    varbit<1952> words;
}

// room that is new, by powers of two;
header ioam_room8_t   { bit<64> zeros; }
header ioam_room16_t  { bit<128> zeros; }
header ioam_room32_t  { bit<256> zeros; }
header ioam_room64_t  { bit<512> zeros; }
header ioam_room128_t { bit<1024> zeros; }

// and what this hop writes.
header ioam_word_t      { bit<32> value; }
header ioam_wide_word_t { bit<64> value; }

#define NO_IOAM_WORDS                                          \
    hdr.ioam_node.setInvalid();                                \
    hdr.ioam_ports.setInvalid();                               \
    hdr.ioam_seconds.setInvalid();                             \
    hdr.ioam_fraction.setInvalid();                            \
    hdr.ioam_delay.setInvalid();                               \
    hdr.ioam_load.setInvalid();                                \
    hdr.ioam_queue.setInvalid();                               \
    hdr.ioam_complement.setInvalid();                          \
    hdr.ioam_node_wide.setInvalid();                           \
    hdr.ioam_ports_wide.setInvalid();                          \
    hdr.ioam_data_wide.setInvalid();                           \
    hdr.ioam_buffer.setInvalid();

#define NO_IOAM                                                \
    hdr.ioam_ipv6.setInvalid();                                \
    hdr.ioam.setInvalid();                                     \
    hdr.ioam_free.setInvalid();                                \
    hdr.ioam_room8.setInvalid();                               \
    hdr.ioam_room16.setInvalid();                              \
    hdr.ioam_room32.setInvalid();                              \
    hdr.ioam_room64.setInvalid();                              \
    hdr.ioam_room128.setInvalid();                             \
    hdr.ioam_slot.setInvalid();                                \
    hdr.ioam_done.setInvalid();                                \
    NO_IOAM_WORDS

// A telemetry report v2.0, after its UDP header.
header report_t {
    bit<4>  version;             // 2
    bit<6>  hardware;
    bit<22> sequence;
    bit<32> node;
    bit<4>  type;                // 1: INT
    bit<4>  inner_type;          // 3: Ethernet
    bit<8>  length;              // words after the one that this is in
    bit<8>  metadata_length;     // words of `report_hop_t` or `report_drop_t`
    bit<1>  dropped;
    bit<1>  congested_queue;
    bit<1>  tracked_flow;
    bit<1>  intermediate;
    bit<4>  reserved;
    bit<16> metadata_bits;
    bit<16> domain;
    bit<16> domain_bits;
    bit<16> domain_status;
}

// The sink's own hop.
header report_hop_t {
    bit<16> ingress_port;
    bit<16> egress_port;
    bit<32> latency;
    bit<8>  queue;
    bit<24> occupancy;
    bit<64> ingress_time;
    bit<64> egress_time;
    bit<32> utilisation;
}

// Where, when and why a packet ended.
header report_drop_t {
    bit<16> ingress_port;
    bit<16> egress_port;
    bit<64> ingress_time;
    bit<8>  queue;
    bit<8>  reason;
    bit<16> reserved;
}

// What a switch makes when a timer rings (timers.p4).
header timer_t {
    bit<32> cell;
}

struct headers_t {
    timer_t       timer;               // never leaves the switch
    ethernet_t    outer_ethernet;      // of a report, or of a tunnel (vxlan.p4)
    ipv4_t        outer_ipv4;
    udp_t         outer_udp;
    vxlan_t       vxlan;
    report_t      report;
    report_hop_t  report_hop;
    report_drop_t report_drop;
    ethernet_t    ethernet;
    pfc_t         pfc;
    credit_t      credit;
    conga_t       conga;
    vlan_t        vlan;
    csig_t        csig;                // or
    csig_wide_t   csig_wide;
    ipv6_t        ioam_ipv6;           // around what follows, for a trace
    ioam_t        ioam;
    ioam_words_t  ioam_free;
    ioam_room8_t  ioam_room8;
    ioam_room16_t ioam_room16;
    ioam_room32_t ioam_room32;
    ioam_room64_t ioam_room64;
    ioam_room128_t ioam_room128;
    ioam_words_t  ioam_slot;           // or, in the order of the type's bits,
    ioam_word_t   ioam_node;
    ioam_word_t   ioam_ports;
    ioam_word_t   ioam_seconds;
    ioam_word_t   ioam_fraction;
    ioam_word_t   ioam_delay;
    ioam_word_t   ioam_load;
    ioam_word_t   ioam_queue;
    ioam_word_t   ioam_complement;
    ioam_wide_word_t ioam_node_wide;
    ioam_wide_word_t ioam_ports_wide;
    ioam_wide_word_t ioam_data_wide;
    ioam_word_t   ioam_buffer;
    ioam_words_t  ioam_done;
    ipv6_t        carrier;             // of what follows, by micro-segments (usid.p4)
    srh_t         srh;
    segment_t[3]  segments;
    ipv4_t        ipv4;                // or
    ipv6_t        ipv6;                // or
    sunh_t        sunh;
    udp_t         udp;
    int_head_t    int_head;
    int_node_t    int_node;
    int_ports_t   int_ports;
    int_latency_t int_latency;
    int_queue_t   int_queue;
    int_time_t    int_ingress_time;
    int_time_t    int_egress_time;
    int_ports2_t  int_ports2;
    int_load_t    int_load;
    int_buffer_t  int_buffer;
    int_none_t[7] int_none;
    int_rate_t    int_rate;
    int_left_t    int_left;
    int_sent_t    int_sent;
    int_stack_t   int_stack;
    bth_t         bth;                 // of a packet that goes round to become a notification
    notice_t      notice;
#ifdef INC
    inc_t         inc;
    vector_t      vector;
#endif
    // Not part of any packet: what a sink takes off one goes along with the clone that becomes the
    // report, because clones keep all headers, and the deparser writes none of these.
    int_head_t    kept_int_head;
    int_stack_t   kept_int_stack;
    ipv6_t        kept_ioam_ipv6;
    ioam_t        kept_ioam;
    ioam_words_t  kept_ioam_free;
    ioam_words_t  kept_ioam_slot;
    ioam_words_t  kept_ioam_done;
    report_hop_t  kept_hop;
}

// What tells when a pause ends that ends with the threshold; see buffer.p4.
struct xon_t {
    bit<1>  follows;
    bytes_t pool;
    bytes_t reserved;
    bit<4>  alpha;
    bytes_t below;
    bytes_t least;
}

// A packet's claim on the shared buffer, from admission (ingress) to release (egress).
struct claim_t {
    bytes_t size;                // 0: nothing was claimed, as for copies
    port_t  in_port;
    bool    congested;           // it went into headroom, or would have
    bool    credited;            // its sender goes by credits, not by pauses
    bytes_t resume_at;           // if a pause begins now, it ends when the queue holds no more
    xon_t   xon;
}

// What a source is to ask of the hops, if this switch is the source.
struct int_order_t {
    bool    wanted;              // INT
    bool    traces;              // or IOAM
    bit<16> instructions;
    bit<5>  hop_words;
    bit<8>  hops;
    bit<16> domain;
}

struct metadata_t {
    drop_reason_t drop_reason;   // anything but NONE ends the packet
    bit<6>        dscp;          // of the packet as it came
    bit<16>       src_port;      // of the flow, whatever telemetry made of it; 0 if there are none
    bit<16>       dst_port;
    @field_list(PARKED_FIELDS) priority_t priority;    // classify.p4
    @field_list(PARKED_FIELDS) bool       lossless;    // buffer.p4
    bit<16>       tenant;        // of the host it came from (permit.p4)
    bit<16>       steering;      // route.p4 to usid.p4: by which policy; 0 is none
    bool          is_steered;    // its port is settled
#ifdef INC
    bool          in_tree;       // so is that of a part or result (inc.p4)
#endif
    bool          tenancy;       // of a tenant with a network of its own (vxlan.p4):
    tenant_net_t  net;           // which one,
    bool          is_bridged;    // or else routed,
    bool          is_from_tunnel;
    bool          is_flooded;
    @field_list(COPY_FIELDS, FLOOD_FIELDS) bit<16> flood_step;    // of those to whom it goes
    ipv4_addr_t   vtep;          // and to which leaf; 0 is none
    bit<24>       vni;
    mac_t         leaf_mac;
    group_t       group;         // route.p4 to path.p4
    leaf_t        far_leaf;
    member_t      member;
    @field_list(PARKED_FIELDS) port_t     out_port;    // route.p4 or path.p4 to forward.p4
    mac_t         next_mac;
    @field_list(PARKED_FIELDS) claim_t    claim;
    bytes_t       in_used;       // after the release: its ingress queue,
    bytes_t       in_headroom;   // that queue's headroom,
    bytes_t       out_used;      // before it: the queue it waited in,
    bytes_t       pool_used;     // and the pool
    bit<32>       utilisation;   // of the link it leaves by, in 1/65536 (load.p4),
    bit<32>       sent_before;   // and the bytes that have left by it before
    @field_list(PARKED_FIELDS) int_order_t int_order;
#ifdef PARKING
    @field_list(PARKED_FIELDS) bool       parked;      // parking.p4
    @field_list(PARKED_FIELDS) bit<32>    ticket;
    @field_list(PARKED_FIELDS) tick_t     arrived;
    @field_list(PARKED_FIELDS) tick_t     asked;       // when it last came out of a queue
#endif

    // What a clone is told about its purpose, and about the packet it was made from.
    bit<32>       copy_session;  // where a copy goes, if `copy_purpose` says that there is one
    @field_list(COPY_FIELDS) copy_t     copy_purpose;
    @field_list(COPY_FIELDS) priority_t copy_priority;
    @field_list(COPY_FIELDS) bool       copy_pause;      // or resume
    @field_list(COPY_FIELDS) bit<8>     copy_reason;
    @field_list(COPY_FIELDS, FLOOD_FIELDS, NOTICE_FIELDS) port_t copy_in_port;
    @field_list(COPY_FIELDS) port_t     copy_out_port;
    @field_list(COPY_FIELDS) bit<16>    copy_length;
    @field_list(COPY_FIELDS) tick_t     copy_time;
}

#endif
