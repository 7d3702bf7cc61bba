// Every size of the fabric program, in one place.

#ifndef SIZES_P4
#define SIZES_P4

#include "types.p4"

const bit<32> PORTS         = 512;       // all values of a 9-bit port number
const bit<32> QUEUES        = 4096;      // PORTS x 8 priorities
const bit<32> ROUTES        = 4096;      // prefixes a switch can know, of each IP
const bit<32> SIDS          = 1024;      // of a switch itself
const bit<32> POLICIES      = 1024;      // by which packets are steered, by tenant
const bit<32> SEGMENT_LISTS = 16384;     // of all policies together
const bit<32> GROUPS        = 512;
const bit<32> SLOTS         = 32768;     // of all groups together
const bit<32> DRILLS        = 4096;      // GROUPS x 8 priorities
const bit<32> FLOWLETS      = 8192;      // flows remembered by flowlet switching; a power of two
const bit<32> NOTIFIED      = 8192;      // flows whose senders were told; a power of two
const bit<32> LEAVES        = 256;       // leaves among which congestion is told
const bit<32> LEAF_PATHS    = 16384;     // LEAVES x 64 ways of a group
const bit<32> HOSTS         = 65536;     // whose tenants are known
const bit<32> TENANT_NETS   = 4096;      // of all tenants, on a switch
const bit<32> VTEPS         = 65536;     // leaves by tenants' networks
const bit<32> FLOODS        = 16384;     // steps of all floods together
const bit<32> RULES         = 1024;      // of the access list
const bit<32> INT_FLOWS     = 1024;      // sets of flows under telemetry
const bit<32> DROP_REASONS  = 64;        // values of drop_reason_t that can be counted: 29 are free
const bit<32> INC_JOBS      = 256;       // whose collectives are summed up here
const bit<32> INC_NEIGHBOURS = 16384;    // INC_JOBS x 64 children
const bit<32> INC_CELLS     = 2048;      // of all jobs together: two for each slot

#endif
