/* The control plane's language: records in a buffer, little-endian words, in and out.
 *
 * A batch is one buffer of records; each starts with a ctl_head and is padded to eight bytes. The
 * caller gets a ctl_result per record, in order. Reads are one record each and fill a buffer.
 * Keys, masks and action parameters are packed as the program's description lays them out.
 */
#pragma once

#include "sw.h"

enum ctl_kind {
    CTL_TABLE = 1,
    CTL_DEFAULT,
    CTL_MEMBER,
    CTL_GROUP,
    CTL_MULTICAST,
    CTL_CLONE,
    CTL_COUNTER,
    CTL_DIRECT_COUNTER,
    CTL_METER,
    CTL_DIRECT_METER,
    CTL_REGISTER,
    CTL_VALUE_SET,
    CTL_DIGEST,
    CTL_DIGEST_ACK,
};

enum ctl_verb { CTL_INSERT = 1, CTL_MODIFY = 2, CTL_DELETE = 3 };
enum ctl_target { CTL_TO_ACTION, CTL_TO_MEMBER, CTL_TO_GROUP };

#define CTL_ALL UINT64_MAX  /* as an index: every cell */
#define CTL_BY_PROGRAM 1u   /* flags: a const entry, installed with the program */

struct ctl_head {
    uint16_t kind;
    uint16_t verb;
    uint32_t length; /* of the whole record */
    uint32_t object; /* table, profile, counter, ... by number */
    uint32_t flags;
};

struct ctl_table { /* then key words, mask words (ternary, range), action parameters */
    struct ctl_head head;
    int32_t priority;
    uint32_t prefix;
    ns_t idle_timeout;
    uint32_t target; /* ctl_target */
    uint32_t id;     /* an action's number, SW_NO_ACTION, or a member's or group's id */
};

struct ctl_member { /* then action parameters */
    struct ctl_head head;
    uint32_t id;
    uint32_t action;
};

struct ctl_group { /* then n of ctl_group_member */
    struct ctl_head head;
    uint32_t id;
    uint32_t n;
};
struct ctl_group_member {
    uint32_t id, weight;
    int32_t watch_port;
    uint32_t unused;
};

struct ctl_replicas { /* a multicast group or clone session (head.object); then n of ctl_replica */
    struct ctl_head head;
    uint32_t n;
    uint32_t max_bytes;
    uint32_t priority;
    uint32_t group;
};
struct ctl_replica {
    uint32_t port, rid;
};

struct ctl_cell { /* counter: packets, bytes; meter: configured, cir, cburst, pir, pburst;
                     register: the value's words */
    struct ctl_head head;
    uint64_t index;
    uint64_t value[];
};

/* Direct counters and meters: a ctl_table with the same values after key and mask. */

struct ctl_value_set { /* then n times value words and mask words */
    struct ctl_head head;
    uint32_t n;
    uint32_t unused;
};

struct ctl_digest {
    struct ctl_head head;
    ns_t max_timeout, ack_timeout;
    uint32_t max_list;
    uint32_t list_id; /* of an acknowledgement */
};

enum ctl_reason { /* see ctl_reasons for code and text */
    CTL_OK,
    CTL_MALFORMED,
    CTL_NO_PROGRAM,
    CTL_NO_OBJECT,
    CTL_BAD_VERB,
    CTL_EXISTS,
    CTL_NOT_FOUND,
    CTL_FULL,
    CTL_NO_MEMORY,
    CTL_KEY_TOO_WIDE,
    CTL_MASK_TOO_WIDE,
    CTL_PREFIX_TOO_LONG,
    CTL_RANGE_EMPTY,
    CTL_PARAM_TOO_WIDE,
    CTL_BAD_ACTION,
    CTL_WANTS_ACTION,
    CTL_WANTS_MEMBER,
    CTL_WANTS_SELECTOR,
    CTL_NO_MEMBER,
    CTL_NO_GROUP,
    CTL_IN_USE,
    CTL_CONST_TABLE,
    CTL_CONST_DEFAULT,
    CTL_NO_TIMEOUT,
    CTL_BAD_INDEX,
    CTL_NOT_DIRECT,
    CTL_BAD_PORT,
    CTL_BAD_RATES,
    CTL_NOT_UNDOABLE,
    CTL_ABORTED,
    CTL_REASONS,
};

struct ctl_reason_text {
    uint32_t code; /* gRPC status */
    const char *text;
};
extern const struct ctl_reason_text ctl_reasons[CTL_REASONS];

struct ctl_result {
    uint32_t reason;
    uint32_t unused;
};

/* Carry out records until `length` bytes are consumed or `most` records are done; returns bytes
 * consumed. `results` has room for every record. */
size_t ctl_write(struct sw *sw, const void *records, size_t length, struct ctl_result *results,
                 size_t most, ns_t now);

/* All of the records or none: the first failure undoes those before it; every other record then
 * answers CTL_ABORTED. Returns false in that case. */
bool ctl_write_whole(struct sw *sw, const void *records, size_t length,
                     struct ctl_result *results, ns_t now);

/* Reads */

struct ctl_entry { /* then key words, mask words, action parameters (as many as the stride holds) */
    uint32_t table;
    uint32_t position;
    int32_t priority;
    uint32_t prefix;
    ns_t idle_timeout, idle;
    uint32_t target, id;
    uint32_t is_const, has_rates;
    uint64_t packets, bytes;
    uint64_t rates[4]; /* cir, cburst, pir, pburst */
};

size_t ctl_entry_size(const struct sw *sw, uint32_t table);
/* Entries from *position on, as many as fit; *position moves on, to TABLE_NONE at the end. */
size_t ctl_read_entries(struct sw *sw, uint32_t table, uint32_t *position, void *out, size_t room,
                        ns_t now);
/* The entry a ctl_table record names, or the default entry of its table; 0 if there is none. */
size_t ctl_read_entry(struct sw *sw, const struct ctl_table *record, void *out, ns_t now);
size_t ctl_read_default(struct sw *sw, uint32_t table, void *out, ns_t now);
/* Cells `first` to `first + n - 1` of a counter, meter or register (a ctl_kind), as they lie in
 * memory; meters as configured, cir, cburst, pir, pburst. 0 if out of bounds. */
size_t ctl_read_cells(struct sw *sw, uint32_t kind, uint32_t object, uint64_t first, uint64_t n,
                      void *out);
/* Write one entry of a table as a record, for idle.c. */
size_t ctl_put_entry(struct sw *sw, uint32_t table, uint32_t position, void *out, ns_t now);
