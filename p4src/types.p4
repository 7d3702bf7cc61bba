// Names for the widths and numbers the mechanisms share.

#ifndef TYPES_P4
#define TYPES_P4

typedef bit<48> mac_t;
typedef bit<32> ipv4_addr_t;
typedef bit<128> ipv6_addr_t;
typedef bit<9>  port_t;
typedef bit<3>  priority_t;     // also the queue: 0 lowest, 7 highest
typedef bit<16> group_t;        // a set of equally good next hops; 0 is none
typedef bit<16> member_t;       // a next hop's place in its group
typedef bit<16> leaf_t;         // a leaf's number; 0 is none
typedef bit<16> tenant_net_t;   // a tenant's network in a switch, routed or bridged; 0 is none
typedef bit<8>  metric_t;       // how busy a path is, 0 to 7
typedef bit<32> bytes_t;
typedef bit<48> tick_t;         // the target's clock; the controller converts to it
typedef bit<32> chance_t;       // a probability: 0 never, all ones always

const bit<16> ETHERTYPE_IPV4        = 0x0800;
const bit<16> ETHERTYPE_VLAN        = 0x8100;
const bit<16> ETHERTYPE_IPV6        = 0x86DD;
const bit<16> ETHERTYPE_MAC_CONTROL = 0x8808;
const bit<16> ETHERTYPE_CONGA       = 0x88B5;    // for local experiments
const bit<16> ETHERTYPE_CSIG        = 0x9900;    // none is assigned: docs/csig.md
const bit<16> ETHERTYPE_CSIG_WIDE   = 0x9901;
const bit<16> ETHERTYPE_SUNH        = 0x885B;    // none is assigned: docs/scale-up.md
const bit<16> ETHERTYPE_NOTICE      = 0x88B6;    // for local experiments; never leaves a switch
const bit<16> OPCODE_PFC            = 0x0101;
const bit<16> OPCODE_EXTENSION      = 0xFFFE;    // of MAC control: what an OUI's owner defines
const bit<24> CREDIT_OUI            = 0x02C105;  // ours, locally administered
const mac_t   MAC_CONTROL_ADDR      = 0x0180C2000001;
const bit<10> IPV6_LINK_LOCAL       = 0x3FA;     // fe80::/10
const bit<8>  IPV6_MULTICAST        = 0xFF;      // ff00::/8
const bit<8>  PROTOCOL_UDP          = 17;
const bit<8>  PROTOCOL_IPV4         = 4;         // as what a carrier carries (usid.p4)
const bit<8>  PROTOCOL_IPV6         = 41;
const bit<8>  EXTENSION_HOP_BY_HOP     = 0;      // of IPv6, these
const bit<8>  EXTENSION_ROUTING        = 43;
const bit<8>  EXTENSION_FRAGMENT       = 44;
const bit<8>  EXTENSION_AUTHENTICATION = 51;
const bit<8>  EXTENSION_DESTINATION    = 60;
const bit<8>  EXTENSION_MOBILITY       = 135;
const bit<16> PADDING_OF_2          = 0x0100;    // PadN, and that no byte of padding follows
const bit<8>  OPTION_IOAM           = 0x31;      // of hop-by-hop options; hops may change it
const bit<16> INT_DOMAIN            = 0xC105;    // whose domain-specific instructions are ours
const bit<16> UDP_PORT_INT          = 20052;     // telemetry follows; the shim has the port meant
const bit<16> UDP_PORT_VXLAN        = 4789;
const bit<16> UDP_PORT_ROCE         = 4791;
const bit<16> UDP_PORT_INC          = 0xC105;    // of those for private use (docs/inc.md)
const bit<8>  BTH_CNP               = 0x81;
const bit<8>  BTH_BECN              = 0x40;
const bit<8>  BTH_SENDS_AND_WRITES  = 0x0C;      // opcodes of a reliable connection's, below it

const bit<16> ETHERNET_BYTES = 14;
const bit<16> IPV4_BYTES = 20;
const bit<16> IPV6_BYTES = 40;
const bit<16> SRH_BYTES  = 8;                    // without segments
const bit<16> UDP_BYTES  = 8;
const bit<16> VXLAN_BYTES = 8;
const bit<16> CONGA_BYTES = 8;
const bit<16> IOAM_BYTES = 16;                   // without the hops' words
const bit<16> BTH_BYTES  = 12;
const bit<16> NOTICE_BYTES = 40;                 // from UDP to the ICRC
const bit<16> INC_BYTES = 16;
const bit<16> VECTOR_BYTES = 1024;

const bit<2>  ECN_NOT_CAPABLE = 0;
const bit<2>  ECN_CAPABLE_1   = 1;               // ECT(1), which says more than ECT(0)
const bit<2>  ECN_CAPABLE_0   = 2;
const bit<2>  ECN_CONGESTED   = 3;

const priority_t PRIORITY_CONTROL = 7;           // pause frames overtake everything
const priority_t PRIORITY_ROUTING = 6;           // what control planes say to each other

// A number of bytes in 24 bits, as telemetry has it.
#define BYTES24(bytes) ((bit<24>)((bytes) > 0xFFFFFF ? 0xFFFFFF : (bytes)))

const bit<32> PACKET_NORMAL      = 0;            // instance types
const bit<32> PACKET_RECIRCULATED = 4;
const bit<32> PACKET_RESUBMITTED = 6;

#define COPY_FIELDS 1                            // the field list clones keep
#define PARKED_FIELDS 2                          // and that of parked packets
#define FLOOD_FIELDS 3                           // and of what goes round (vxlan.p4,
#define NOTICE_FIELDS 4                          // notify.p4)

// Clone sessions: one for every port, which leads back out of it, and one for reports.
#define SESSION_OF(port) ((bit<32>)(port) + 1)
const bit<32> SESSION_REPORTS = 1000;

// What becomes of a queue that the watchdog found stuck.
enum bit<8> stuck_t {
    NO      = 0,
    DROP    = 1,    // it goes on, and what comes out of it is dropped
    FORWARD = 2,    // it goes on, whatever pause frames say
    ALERT   = 3     // it stays as it is; only counted
}

// Why a packet ended here. Each drop is counted under its reason (account.p4).
enum bit<8> drop_reason_t {
    NONE          = 0,
    MALFORMED     = 1,    // too short for its headers, of another IP version than it says, or with
                          // options or extension headers, but for multicast's hop by hop
    NOT_IP        = 2,    // neither IPv4 nor IPv6, nor SUNH
    BAD_CHECKSUM  = 3,    // of the IPv4 header
    TTL_EXPIRED   = 4,
    NO_ROUTE      = 5,
    NO_NEXT_HOP   = 6,    // the route names a group or neighbour that does not exist
    BUFFER_FULL   = 7,    // a lossy packet over its queue's share of the buffer
    HEADROOM_FULL = 8,    // a lossless packet whose sender was paused too late
    WATCHDOG      = 9,    // its queue is stuck behind a pause, and the watchdog drops
    PORT_DOWN     = 10,   // no living way on
    INJECTED_LOSS = 11,   // lost on purpose
    DENIED        = 12,   // by the access list
    OTHER_TENANT  = 13,   // the destination belongs to somebody else
    EARLY_DROP    = 14,   // a congested queue, and marking it would have been of no use
    FORGED_SOURCE = 15,   // a host spoke as another
    FORGED_HEADER = 16,   // a host sent what only switches say: conga's header, telemetry
    FOREIGN_PAUSE = 17,   // a pause frame that names no class held here
    TRIMMED       = 18,   // no drop: its headers go on (trim.p4); told in reports
    CUT_LOST      = 19,   // those headers found no room further on
    LINK_LOCAL    = 20,   // IPv6 that stays on its link: neighbour discovery, multicast
    CREDIT_USED   = 21,   // no drop: word of credits, taken in (credit.p4)
    FOREIGN_CREDIT = 22,  // word of credits that nobody here can have given
    NO_CREDIT     = 23,   // its sender had no credit left for it
    CONTROL_LIMIT = 24,   // more for the control plane than it is to be bothered with
    FOR_CONTROL   = 25,   // no drop: to an address of the switch's own, until punt.p4 takes it
    BAD_CARRIER   = 26,   // uSIDs that lead nowhere, or on beyond their end
    UNKNOWN_VNI   = 27,   // of a tenant that this leaf has no part in
    FOREIGN_TUNNEL = 28,  // from a leaf that has no part in that tenant, or from none
    BAD_TUNNEL    = 29,   // to a leaf's own address, and no VXLAN, or marked in vain
    FOREIGN_MAC   = 30,   // a tenant's host spoke as another, or a routed frame is not for us
    FOR_TUNNEL    = 31,   // no drop: it goes round and comes again (vxlan.p4)
    IN_SUM        = 32,   // no drop: a part that went into a sum (inc.p4)
    OLD_PART      = 33,   // a part or result that was heard before, or came too late
    FOREIGN_PART  = 34    // a part or result from where its job has no member, or none to expect
}

// What a packet of a collective is (inc.p4).
enum bit<8> inc_kind_t {
    PART   = 0x11,        // the version, 1, and the kind
    RESULT = 0x12
}

const bit<8>  INC_WITH_DATA  = 1;                // of its flags
const bit<16> INC_EVERYBODY  = 0xFFFF;           // owners of a result
const bit<8>  INC_HAS_RESULT = 1;                // of a cell's state
const bit<8>  INC_HAS_DATA   = 2;

// What a copy of a packet is for.
enum bit<8> copy_t {
    NONE        = 0,
    PAUSE       = 1,      // becomes a pause frame
    INT_REPORT  = 2,      // becomes a report of the telemetry the packet carried
    DROP_REPORT = 3,      // becomes a report of the packet's end
    CREDIT      = 4,      // becomes word of credits
    FLOOD       = 5,      // goes round, to where the flood has not been yet; if `copy_pause` is
                          // set, a copy of it becomes a pause frame
    NOTICE      = 6,      // goes round, to become a notification (notify.p4)
    TRACE_REPORT = 7      // becomes a report of the trace the packet carried
}

#endif
