/* A fixed-function switch as a network operating system sees it: names, not numbers. */
#ifndef FIXED_TYPES_P4
#define FIXED_TYPES_P4

#define NAMED(uri, name, bits) @p4runtime_translation(uri, string) type bit<bits> name;
#define WCMP_GROUPS 128
#define WCMP_MEMBERS 1024
#define WCMP_MAX_WAYS 128
#define ACL_ENTRIES 256
#define FOR_SDN @p4runtime_role("sdn_controller")
#define FOR_REPLICATION @p4runtime_role("packet_replication_engine_manager")

NAMED("fixed/port", port_id_t, 9)
NAMED("fixed/vrf", vrf_id_t, 10)
NAMED("fixed/router_interface", router_interface_id_t, 12)
NAMED("fixed/neighbour", neighbour_id_t, 12)
NAMED("fixed/nexthop", nexthop_id_t, 12)
NAMED("fixed/wcmp_group", wcmp_group_id_t, 12)
NAMED("fixed/mirror_session", mirror_session_id_t, 10)
NAMED("fixed/queue", queue_id_t, 5)
NAMED("fixed/tunnel", tunnel_id_t, 8)

@p4runtime_translation("fixed/acl_label", bit<32>)
type bit<8> acl_label_t;

typedef bit<48> mac_t;
typedef bit<32> ipv4_t;
typedef bit<128> ipv6_t;
typedef bit<12> vlan_id_t;
typedef bit<16> multicast_group_id_t;

const vrf_id_t DEFAULT_VRF = (vrf_id_t)10w0;
const acl_label_t NO_LABEL = (acl_label_t)8w0;
const mirror_session_id_t NO_SESSION = (mirror_session_id_t)10w0;
const vlan_id_t NO_VLAN = 0;
const bit<9> CPU_PORT = 510;
const bit<9> DROP_PORT = 511;
const bit<32> COPY_TO_CPU = 255;
const bit<32> MIRROR = 254;
const bit<8> GRE = 47;
const bit<16> IPFIX = 4739;
const bit<32> CLONED = 1;
const bit<32> REPLICATED = 5;

enum bit<16> ether_type_t {
    ipv4 = 0x0800,
    arp = 0x0806,
    vlan = 0x8100,
    ipv6 = 0x86DD,
    lldp = 0x88CC
}

enum bit<8> copies_t {
    punted = 1,
    mirrored = 2
}

enum bit<2> colour_t {
    green = 0,
    yellow = 1,
    red = 2
}

error { Version, Lengths, Tunnel }

#endif
