/* The walls around an algorithm: whatever it does wrong ends its call, and nothing else.
 *
 * It is compiled with calls of what stands here at every read and write (-fsanitize=kernel-address), at
 * every block (-fsanitize-coverage=trace-pc), at every function's beginning and end
 * (-finstrument-functions), and before divisions. So it reads its snapshot, what is known of its
 * way, its own tables and its own stack, writes its snapshot and its stack, and has so many blocks
 * until it has to be done. Its assembler is looked through before it is linked (lab/machine/algorithm.py): it
 * holds no instruction that its C did not make, calls nothing through a pointer, nothing outside
 * but what is listed there, and keeps nothing between calls.
 *
 * What it writes over its stack may change its registers, so the way out is a jump, to what was kept
 * of ours where it cannot write.
 */
#include "program.h"

#define HIDDEN __attribute__((visibility("hidden")))

enum { BLOCKS = 100000, STACK = 1 << 16, DEEPEST = 40 };

int __algorithm_main(uint64_t *snapshot) HIDDEN;
extern const char __ehdr_start[] HIDDEN, _end[] HIDDEN;

struct pcm_fault pcm_fault;

struct walls {
    uintptr_t read_from, write_from, until; /* numbers of the fabric, the snapshot */
    uintptr_t stack_from, stack_until;
    const double *fabric;
    uint32_t blocks, depth;
    int end;
    void *way_out[5];
    void *returns[DEEPEST];
};
static __thread struct walls walls;

static __attribute__((noinline, noreturn)) void leave(void) { __builtin_longjmp(walls.way_out, 1); }

static __attribute__((noinline, noreturn)) void stop(enum pcm_end end, uintptr_t where)
{
    uint64_t none = 0;
    if (__atomic_compare_exchange_n(&pcm_fault.end, &none, (uint64_t)end, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED))
        pcm_fault.where = where;
    walls.end = end;
    leave();
}

static inline bool within(uintptr_t at, size_t size, uintptr_t from, uintptr_t until)
{
    return at >= from && at <= until && size <= until - at;
}

static inline void may_read(uintptr_t at, size_t size)
{
    if (!within(at, size, walls.read_from, walls.until) &&
        !within(at, size, walls.stack_from, walls.stack_until) &&
        !within(at, size, (uintptr_t)__ehdr_start, (uintptr_t)_end))
        stop(PCM_READ, at);
}

static inline void may_write(uintptr_t at, size_t size)
{
    if (!within(at, size, walls.write_from, walls.until) &&
        !within(at, size, walls.stack_from, walls.stack_until))
        stop(PCM_WROTE, at);
}

#define CHECKED(size)                                                                                \
    HIDDEN void __asan_load##size##_noabort(uintptr_t at) { may_read(at, size); }                    \
    HIDDEN void __asan_store##size##_noabort(uintptr_t at) { may_write(at, size); }
CHECKED(1)
CHECKED(2)
CHECKED(4)
CHECKED(8)
CHECKED(16)
HIDDEN void __asan_loadN_noabort(uintptr_t at, size_t size) { may_read(at, size); }
HIDDEN void __asan_storeN_noabort(uintptr_t at, size_t size) { may_write(at, size); }
HIDDEN void __asan_handle_no_return(void) {}

HIDDEN void __sanitizer_cov_trace_pc(void)
{
    if (!walls.blocks--)
        stop(PCM_ENDLESS, 0);
    if ((uintptr_t)__builtin_frame_address(0) < walls.stack_from)
        stop(PCM_STACK, 0);
}

HIDDEN void __cyg_profile_func_enter(void *function, void *from)
{
    (void)function;
    if (walls.depth == DEEPEST)
        stop(PCM_STACK, 0);
    walls.returns[walls.depth++] = from;
}

HIDDEN void __cyg_profile_func_exit(void *function, void *to)
{
    (void)function;
    if (!walls.depth || walls.returns[--walls.depth] != to)
        stop(PCM_RETURN, 0);
}

HIDDEN void __ubsan_handle_divrem_overflow(void) { stop(PCM_DIVISION, 0); }
HIDDEN void __ubsan_handle_builtin_unreachable(void) { stop(PCM_UNREACHABLE, 0); }
/* Signed numbers that overflow come round, as they do in adapters. */
HIDDEN void __ubsan_handle_add_overflow(void) {}
HIDDEN void __ubsan_handle_sub_overflow(void) {}
HIDDEN void __ubsan_handle_mul_overflow(void) {}
HIDDEN void __ubsan_handle_negate_overflow(void) {}

HIDDEN void __assert_fail(void) { stop(PCM_ASSERTED, 0); }

/* What it says is heard by nobody. */
HIDDEN void *stderr, *stdout;
HIDDEN int printf(void) { return 0; }
HIDDEN int fprintf(void) { return 0; }
HIDDEN int puts(void) { return 0; }
HIDDEN int putchar(void) { return 0; }
HIDDEN size_t fwrite(void) { return 0; }
HIDDEN int fputc(void) { return 0; }

HIDDEN void *memset(void *to, int byte, size_t size)
{
    may_write((uintptr_t)to, size);
    for (volatile char *at = to; size--;)
        *at++ = (char)byte;
    return to;
}

HIDDEN void *memmove(void *to, const void *from, size_t size)
{
    may_read((uintptr_t)from, size);
    may_write((uintptr_t)to, size);
    volatile char *at = to;
    const char *source = from;
    if ((uintptr_t)to < (uintptr_t)from)
        for (size_t i = 0; i < size; i++)
            at[i] = source[i];
    else
        while (size--)
            at[size] = source[size];
    return to;
}

HIDDEN void *memcpy(void *to, const void *from, size_t size) { return memmove(to, from, size); }

/* What is known of the way of the flow that it was called for. */
HIDDEN const double *pcm_way(void) { return walls.fabric; }

/* Where a function's frame begins that is called from where this is. */
static __attribute__((noinline)) uintptr_t frame(void) { return (uintptr_t)__builtin_frame_address(0); }

extern const uint32_t pcm_words HIDDEN;

HIDDEN __attribute__((noinline)) enum pcm_end pcm_call(uint64_t *snapshot, const double *fabric)
{
    walls.read_from = (uintptr_t)fabric;
    walls.fabric = fabric;
    walls.write_from = (uintptr_t)snapshot;
    walls.until = (uintptr_t)(snapshot + pcm_words);
    walls.stack_until = frame();
    walls.stack_from = walls.stack_until - STACK;
    walls.blocks = BLOCKS;
    walls.depth = 0;
    walls.end = PCM_WELL;
    if (!__builtin_setjmp(walls.way_out)) {
        if (__algorithm_main(snapshot))
            stop(PCM_GAVE_UP, 0);
        leave();
    }
    return (enum pcm_end)walls.end;
}
