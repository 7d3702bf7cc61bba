/* Sizes, names and numbers of the mobile fabric: what its control plane and its tables agree on. */
#ifndef MOBILE_TYPES_P4
#define MOBILE_TYPES_P4

#ifndef UPF_SESSIONS
#define UPF_SESSIONS 512
#endif
#define UPF_TERMINATIONS (2 * UPF_SESSIONS)
#define UPF_COUNTERS 1024
#define UPF_METERS 256
#define ROUTES 1024
#define NEXT_IDS 512
#define ANNOTATE(what) @what
#define KEY_ID(number, text) @id(number) @name(text)

typedef bit<48> mac_t;
typedef bit<32> ipv4_t;
typedef bit<128> ipv6_t;
typedef bit<12> vlan_id_t;
typedef bit<20> mpls_label_t;
typedef bit<16> l4_port_t;
typedef bit<32> teid_t;
typedef bit<6> dscp_t;
typedef bit<6> qfi_t;
typedef bit<32> next_id_t;

@p4runtime_translation("mobile/port", bit<32>)
type bit<9> port_num_t;
@p4runtime_translation("mobile/tunnel_peer", string)
type bit<8> peer_id_t;
type bit<4> slice_id_t;
type bit<2> tc_t;
type bit<20> upf_counter_id_t;
type bit<16> upf_meter_id_t;
typedef bit<6> slice_tc_t;

const bit<9> CPU_PORT = 510;
const bit<9> RECIRCULATE_PORT = 509;
const bit<16> CPU_SESSION = 511;
const bit<16> UDP_GTPU = 2152;
const bit<8> GTP_GPDU = 0xFF;
const bit<8> GTP_EXT_PSC = 0x85;
const bit<8> DEFAULT_TTL = 64;
const vlan_id_t DEFAULT_VLAN = 4094;
const peer_id_t NO_PEER = (peer_id_t)8w0;
const slice_id_t DEFAULT_SLICE = (slice_id_t)4w0;
const tc_t BEST_EFFORT = (tc_t)2w0;
const bit<16> IPV4_BYTES = 20;
const bit<16> UDP_BYTES = 8;
const bit<16> GTPU_BYTES = 8;
const bit<16> GTPU_WITH_PSC = GTPU_BYTES + 8;

enum bit<16> eth_type_t {
    ipv4 = 0x0800,
    vlan = 0x8100,
    qinq = 0x88A8,
    ipv6 = 0x86DD,
    mpls = 0x8847,
    lldp = 0x88CC
}

enum bit<8> ip_proto_t {
    icmp = 1,
    tcp = 6,
    udp = 17,
    icmpv6 = 58
}

enum bit<3> forwarding_t {
    bridging = 0,
    mpls = 1,
    ipv4 = 2,
    ipv6 = 4,
    unknown = 7
}

enum bit<2> interface_t {
    none = 0,
    access = 1,
    core = 2,
    buffer = 3
}

enum bit<2> packet_colour_t {
    green = 0,
    yellow = 1,
    red = 2
}

enum bit<8> copied_t {
    to_cpu = 1,
    reported = 2
}

/* Why a packet ended here, counted one by one. */
enum bit<4> upf_drop_t {
    none = 0,
    no_session = 1,
    no_termination = 2,
    by_rule = 3,
    app_rate = 4,
    session_rate = 5,
    slice_rate = 6,
    no_peer = 7,
    ttl = 8
}

error { NotIpv4, NotIpv6, ShortIpv4, GtpVersion, TooManyTags }

#endif
