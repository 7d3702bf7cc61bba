/* The names a network operating system and its switch agree on. */
#ifndef EDGE_TYPES_P4
#define EDGE_TYPES_P4

#define PACKED(name) header name##_h
#define NEXT_HOP_BITS 16
#define MAX_WAYS 64

@p4runtime_translation("edge/port", string)
type bit<9> port_id_t;
@p4runtime_translation("edge/vrf", string)
type bit<10> vrf_id_t;
@p4runtime_translation("edge/nexthop", string)
type bit<NEXT_HOP_BITS> nexthop_id_t;
@p4runtime_translation("edge/interface", string)
type bit<NEXT_HOP_BITS> interface_id_t;
@p4runtime_translation("edge/neighbour", string)
type bit<NEXT_HOP_BITS> neighbour_id_t;
@p4runtime_translation("edge/group", string)
type bit<12> group_id_t;
@p4runtime_translation("edge/mirror", bit<16>)
type bit<10> mirror_id_t;
@p4runtime_translation("edge/queue", bit<8>)
type bit<5> queue_id_t;

typedef bit<48> mac_t;
typedef bit<32> ipv4_t;
typedef bit<128> ipv6_t;
typedef bit<12> vlan_id_t;
typedef bit<6> dscp_t;

const vrf_id_t DEFAULT_VRF = 0;
const mirror_id_t NO_MIRROR = 0;
const bit<9> CPU_PORT = 510;
const vlan_id_t NO_VLAN = 0;
const vlan_id_t INTERNAL_VLAN = 0xFFF;

enum bit<16> ether_type_t {
    ipv4 = 0x0800,
    arp = 0x0806,
    vlan = 0x8100,
    ipv6 = 0x86DD,
    lldp = 0x88CC
}

enum bit<8> protocol_t {
    icmp = 1,
    ip_in_ip = 4,
    tcp = 6,
    udp = 17,
    icmpv6 = 58
}

enum colour_t { green, yellow, red }
enum bit<2> verdict_t { none = 0, drop = 1, trap = 2, copy = 3 }

enum bit<8> copies_t { mirrored = 1, punted = 2 }

error { BadLength, BadVersion }

#endif
