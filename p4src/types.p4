// Names for the widths and numbers the mechanisms share.

#ifndef TYPES_P4
#define TYPES_P4

typedef bit<48> mac_t;
typedef bit<32> ipv4_addr_t;
typedef bit<9>  port_t;
typedef bit<16> group_t;        // a set of equally good next hops; 0 is none
typedef bit<16> member_t;       // a next hop's place in its group

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8>  PROTOCOL_UDP   = 17;

// Why a packet ended here. Each drop is counted under its reason (drop.p4).
enum bit<8> drop_reason_t {
    NONE         = 0,
    MALFORMED    = 1,    // shorter than its headers say, or IPv4 with options
    NOT_IPV4     = 2,
    BAD_CHECKSUM = 3,    // of the IPv4 header
    TTL_EXPIRED  = 4,
    NO_ROUTE     = 5,
    NO_NEXT_HOP  = 6     // the route names a group or member that does not exist
}

#endif
