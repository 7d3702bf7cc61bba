/* BPF by system calls and by hand: a program of forty instructions needs no compiler. */
#define _GNU_SOURCE
#include "burst_send.h"

#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HELPER_LOOP 181 /* bpf_loop, which older headers do not know */
#define EACH 12         /* where its function begins */
#define NOT_SENT (-1)

struct order { /* shared with the program, behind the frames */
    uint32_t n;
    uint32_t ifindex;
    struct {
        uint32_t at; /* in the frames, bytes */
        uint32_t len;
        int32_t result; /* 0: it left */
        uint32_t unused;
    } frames[BURST_MAX];
};

struct burst {
    int program;
    const uint8_t *frames;
    struct order *order;
};

/* What a union holds behind the member that it was initialized by, nobody says: the kernel is told how
 * much there is. */
#define BEFORE(member) offsetof(union bpf_attr, member)

static int bpf(int command, union bpf_attr *attr, size_t size)
{
    return (int)syscall(SYS_bpf, command, attr, size);
}

/* The program */

enum { R0, R1, R2, R3, R4, R5, ENTRY, LEN, SKB, STACK = 10 }; /* calls leave ENTRY, LEN and SKB */

#define SET(to, from) {.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = (to), .src_reg = (from)}
#define SET_TO(to, value) {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (to), .imm = (value)}
#define ADD(to, from) {.code = BPF_ALU64 | BPF_ADD | BPF_X, .dst_reg = (to), .src_reg = (from)}
#define BY(op, to, value) {.code = BPF_ALU64 | (op), .dst_reg = (to), .imm = (value)}
#define LOAD(size, to, from, place)                                                                \
    {.code = BPF_LDX | BPF_MEM | (size), .dst_reg = (to), .src_reg = (from), .off = (place)}
#define STORE(size, to, place, from)                                                               \
    {.code = BPF_STX | BPF_MEM | (size), .dst_reg = (to), .src_reg = (from), .off = (place)}
#define CALL(helper) {.code = BPF_JMP | BPF_CALL, .imm = (helper)}
#define RETURN {.code = BPF_JMP | BPF_EXIT}
#define SKIP_IF(op, register, value, count)                                                        \
    {.code = BPF_JMP | (op), .dst_reg = (register), .imm = (value), .off = (count)}
#define SKIP_IF_SAME(register, other, count)                                                       \
    {.code = BPF_JMP | BPF_JEQ | BPF_X, .dst_reg = (register), .src_reg = (other), .off = (count)}
#define ADDRESS(to, what, value, offset)                                                           \
    {.code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = (to), .src_reg = (what), .imm = (value)},       \
        {.imm = (offset)}

#define IN_ORDER(member) ((int)offsetof(struct order, member))
#define OF_FRAME(member) ((short)(IN_ORDER(frames[0].member) - IN_ORDER(frames[0])))
#define ENTRY_SHIFT 4

_Static_assert(sizeof(((struct order *)0)->frames[0]) == 1 << ENTRY_SHIFT, "as shifted by");

#define TYPE(kind, at, meant) {.name_off = (at), .info = (kind) << 24, .type = (meant)}

/* That there are two functions that return an int is all the kernel wants to know of types. */
static int load_types(void)
{
    static const struct {
        struct btf_header head;
        struct btf_type word;
        uint32_t word_bits;
        struct btf_type shape, all, each;
        char names[14];
    } types = {
        {.magic = BTF_MAGIC,
         .version = BTF_VERSION,
         .hdr_len = sizeof(struct btf_header),
         .type_len = 4 * sizeof(struct btf_type) + sizeof(uint32_t),
         .str_off = 4 * sizeof(struct btf_type) + sizeof(uint32_t),
         .str_len = sizeof types.names},
        TYPE(BTF_KIND_INT, 1, sizeof(int)),
        BTF_INT_SIGNED << 24 | 8 * sizeof(int),
        TYPE(BTF_KIND_FUNC_PROTO, 0, 1),
        TYPE(BTF_KIND_FUNC, 5, 2),
        TYPE(BTF_KIND_FUNC, 9, 2),
        "\0int\0all\0each",
    };
    union bpf_attr attr = {.btf = (uintptr_t)&types,
                           .btf_size = offsetof(__typeof__(types), names) + sizeof types.names};
    return bpf(BPF_BTF_LOAD, &attr, BEFORE(btf_log_size));
}

/* A buffer of the kernel's is written with each frame in turn and a clone of it sent, which takes the
 * contents with it: to write it again gives it others. */
static int load_program(int map, uint32_t chunk, uint32_t n)
{
    const int order = (int)(chunk * n);
    const struct bpf_insn program[] = {
        STORE(BPF_DW, STACK, -8, R1),
        ADDRESS(R1, BPF_PSEUDO_MAP_VALUE, map, order),
        LOAD(BPF_W, R1, R1, IN_ORDER(n)),
        ADDRESS(R2, BPF_PSEUDO_FUNC, EACH - 5, 0),
        SET(R3, STACK),
        BY(BPF_ADD, R3, -8),
        SET_TO(R4, 0),
        CALL(HELPER_LOOP),
        SET_TO(R0, 0),
        RETURN,
        /* EACH: its number in R1, where the buffer's address is in R2; 0 to go on */
        SKIP_IF(BPF_JGE, R1, BURST_MAX, 33),
        LOAD(BPF_DW, SKB, R2, 0),
        BY(BPF_LSH, R1, ENTRY_SHIFT),
        ADDRESS(ENTRY, BPF_PSEUDO_MAP_VALUE, map, order + IN_ORDER(frames)),
        ADD(ENTRY, R1),
        LOAD(BPF_W, LEN, ENTRY, OF_FRAME(len)),
        SKIP_IF(BPF_JGT, LEN, (int)chunk, 26),
        SKIP_IF(BPF_JEQ, LEN, 0, 25),
        LOAD(BPF_W, R2, SKB, offsetof(struct __sk_buff, len)),
        SKIP_IF_SAME(LEN, R2, 5),
        SET(R1, SKB),
        SET(R2, LEN),
        SET_TO(R3, 0),
        CALL(BPF_FUNC_skb_change_tail),
        SKIP_IF(BPF_JNE, R0, 0, 18),
        LOAD(BPF_W, R1, ENTRY, OF_FRAME(at)),
        SKIP_IF(BPF_JGT, R1, order - (int)chunk, 16),
        ADDRESS(R3, BPF_PSEUDO_MAP_VALUE, map, 0),
        ADD(R3, R1),
        SET(R1, SKB),
        SET_TO(R2, 0),
        SET(R4, LEN),
        SET_TO(R5, BPF_F_INVALIDATE_HASH),
        CALL(BPF_FUNC_skb_store_bytes),
        SKIP_IF(BPF_JNE, R0, 0, 7),
        SET(R1, SKB),
        ADDRESS(R2, BPF_PSEUDO_MAP_VALUE, map, order),
        LOAD(BPF_W, R2, R2, IN_ORDER(ifindex)),
        SET_TO(R3, 0),
        CALL(BPF_FUNC_clone_redirect),
        STORE(BPF_W, ENTRY, OF_FRAME(result), R0),
        SET_TO(R0, 0),
        RETURN,
    };
    static const struct bpf_func_info functions[] = {{0, 3}, {EACH, 4}};
    int types = load_types();
    union bpf_attr attr = {
        .prog_type = BPF_PROG_TYPE_SCHED_CLS,
        .insns = (uintptr_t)program,
        .insn_cnt = SW_COUNT(program),
        .license = (uintptr_t)"GPL", /* what the kernel offers its helpers for */
        .prog_btf_fd = (uint32_t)types,
        .func_info = (uintptr_t)functions,
        .func_info_cnt = SW_COUNT(functions),
        .func_info_rec_size = sizeof *functions,
    };
    int loaded = types < 0 ? -1 : bpf(BPF_PROG_LOAD, &attr, BEFORE(line_info_rec_size));
    if (types >= 0)
        close(types);
    return loaded;
}

static int make_map(size_t bytes)
{
    union bpf_attr attr = {
        .map_type = BPF_MAP_TYPE_ARRAY,
        .key_size = sizeof(uint32_t),
        .value_size = (uint32_t)bytes,
        .max_entries = 1,
        .map_flags = BPF_F_MMAPABLE,
    };
    return bpf(BPF_MAP_CREATE, &attr, BEFORE(inner_map_fd));
}

/* Memory of the map in place of what is there, with the same in it. */
static bool replace(uint8_t *frames, size_t bytes, int map)
{
    int how = PROT_READ | PROT_WRITE;
    void *fresh = mmap(NULL, bytes, how, MAP_SHARED, map, 0);
    if (fresh == MAP_FAILED)
        return false;
    memcpy(fresh, frames, bytes);
    munmap(fresh, bytes);
    return mmap(frames, bytes, how, MAP_SHARED | MAP_FIXED, map, 0) == frames;
}

struct burst *burst_open(unsigned ifindex, uint8_t *frames, uint32_t chunk, uint32_t n)
{
    size_t bytes = (size_t)chunk * n;
    struct burst *burst = malloc(sizeof *burst);
    int map = burst ? make_map(bytes + sizeof *burst->order) : -1;
    if (map < 0) {
        free(burst);
        return NULL;
    }
    burst->frames = frames;
    burst->program = load_program(map, chunk, n);
    burst->order =
        mmap(NULL, sizeof *burst->order, PROT_READ | PROT_WRITE, MAP_SHARED, map, (off_t)bytes);
    bool ok = burst->program >= 0 && burst->order != MAP_FAILED && replace(frames, bytes, map);
    close(map); /* program and mappings keep it */
    if (!ok) {
        burst_close(burst);
        return NULL;
    }
    burst->order->ifindex = ifindex;
    return burst;
}

void burst_close(struct burst *burst)
{
    if (!burst)
        return;
    if (burst->program >= 0)
        close(burst->program);
    if (burst->order != MAP_FAILED)
        munmap(burst->order, sizeof *burst->order);
    free(burst);
}

bool burst_send(struct burst *burst, const struct iovec *frames, uint32_t n,
                struct port_count *lost)
{
    /* What the buffer begins with: a frame of a type that nobody looks into. */
    static const uint8_t blank[64] = {[12] = 0x88, [13] = 0xb5};
    union bpf_attr attr = {.test = {.prog_fd = (uint32_t)burst->program,
                                    .data_in = (uintptr_t)blank,
                                    .data_size_in = sizeof blank,
                                    .repeat = 1}};
    struct order *order = burst->order;
    order->n = n;
    for (uint32_t i = 0; i < n; i++) {
        order->frames[i].at = (uint32_t)((const uint8_t *)frames[i].iov_base - burst->frames);
        order->frames[i].len = (uint32_t)frames[i].iov_len;
        order->frames[i].result = NOT_SENT;
    }
    if (bpf(BPF_PROG_TEST_RUN, &attr, sizeof attr.test))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (SW_UNLIKELY(order->frames[i].result != 0)) {
            lost->packets++;
            lost->bytes += frames[i].iov_len;
        }
    return true;
}
