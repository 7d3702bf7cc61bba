/* What a service node reads of a packet, down to the options of IPv4 and TCP. */
#ifndef SERVICE_HEADERS_P4
#define SERVICE_HEADERS_P4

#define MAX_OPTIONS 6
#define CONNECTIONS 4096
#define SKETCH_CELLS 1024
#define PERMUTATION 251
#define BACKENDS 64
#define SERVICES 32

typedef bit<48> mac_t;
typedef bit<32> ipv4_t;
typedef bit<16> l4_port_t;

type bit<16> service_id_t;
type bit<16> backend_id_t;

const backend_id_t NO_BACKEND = (backend_id_t)16w0;
const bit<16> ETH_IPV4 = 0x0800;
const bit<16> ETH_ARP = 0x0806;
const bit<8> SYN = 0x02;
const bit<8> FIN = 0x01;
const bit<8> RST = 0x04;
const bit<4> WORDS_OF_IPV4 = 5;
const bit<4> WORDS_OF_TCP = 5;

enum bit<8> ip_proto_t {
    icmp = 1,
    tcp = 6,
    udp = 17
}

enum bit<8> tcp_option_t {
    end = 0,
    nop = 1,
    mss = 2,
    window_scale = 3,
    sack_permitted = 4,
    timestamps = 8
}

enum direction_t { none, to_service, from_service }
enum bit<3> verdict_t {
    forward = 0,
    no_service = 1,
    no_backend = 2,
    overload = 3,
    expired = 4,
    malformed = 5
}

error { Ipv4Options, TcpOptions, TooManyOptions }

header ethernet_h {
    mac_t dst;
    mac_t src;
    bit<16> type_;
}

header ipv4_h {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> total_len;
    bit<16> identification;
    bit<3> flags;
    bit<13> fragment;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    ipv4_t src;
    ipv4_t dst;
}

header ipv4_options_h {
    varbit<320> octets;
}

header tcp_h {
    l4_port_t sport;
    l4_port_t dport;
    bit<32> seq;
    bit<32> ack;
    bit<4> offset;
    bit<4> reserved;
    bit<8> flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
}

header udp_h {
    l4_port_t sport;
    l4_port_t dport;
    bit<16> len;
    bit<16> checksum;
}

header_union transport_u {
    tcp_h tcp;
    udp_h udp;
}

header option_short_h {
    bit<8> kind;
}

header option_mss_h {
    bit<8> kind;
    bit<8> len;
    bit<16> value;
}

header option_scale_h {
    bit<8> kind;
    bit<8> len;
    bit<8> shift;
}

header option_sack_h {
    bit<8> kind;
    bit<8> len;
}

header option_times_h {
    bit<8> kind;
    bit<8> len;
    bit<32> value;
    bit<32> echo;
}

header_union option_u {
    option_short_h short;
    option_mss_h mss;
    option_scale_h scale;
    option_sack_h sack;
    option_times_h times;
}

/* What the node asks of its neighbours along the way: a shim of segments still to be visited. */
header shim_h {
    bit<8> count;
    bit<8> next_protocol;
    bit<16> service;
}

header segment_h {
    bit<1> last;
    bit<7> function;
    bit<8> argument;
}

struct headers_t {
    ethernet_h ethernet;
    ipv4_h ipv4;
    ipv4_options_h ipv4_options;
    shim_h shim;
    segment_h[4] segments;
    transport_u transport;
    option_u[MAX_OPTIONS] options;
}

/* A pair of what both ends have of something. */
struct both_t<T> {
    T src;
    T dst;
}

struct flow_t {
    both_t<ipv4_t> address;
    both_t<l4_port_t> port;
    bit<8> protocol;
}

struct meta_t {
    flow_t flow;
    direction_t direction;
    verdict_t verdict;
    service_id_t service;
    backend_id_t backend;
    bit<8> tcp_flags;
    bit<16> tcp_len;
    bit<16> max_mss;
    bit<32> slot;
    bit<16> permuted;
    bit<32> estimate;
    bit<32> limit;
    bit<1> is_known;
    bit<1> is_new;
    bit<1> is_rewritten;
    bit<7> option_bytes;
    bit<8> functions;
}

struct new_flow_t {
    bit<16> service;
    bit<16> backend;
    ipv4_t client;
    l4_port_t client_port;
}

#endif
