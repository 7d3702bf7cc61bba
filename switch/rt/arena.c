/* Classes of blocks, behind each other. A name in parentheses is the C library's own function. */
#define _GNU_SOURCE
#include "arena.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#define STEP 32u          /* between the small classes */
#define SMALL_CLASSES 8u  /* up to 256 bytes */
#define LOG_SMALL 8u
#define CLASSES (SMALL_CLASSES + 4 * (40 - LOG_SMALL)) /* a terabyte */
#define ALIGN 16u
#define MAPPED_AT_ONCE ((uint64_t)64 << 20)

struct head { /* right before what is handed out */
    void *block;
    uint64_t class;
};

struct spare {
    struct spare *next;
};

struct arena {
    pthread_mutex_t lock; /* which nobody has when it is kept */
    uint64_t used, trace;
    struct spare *spares[CLASSES];
};

static struct arena *arena;
static uint64_t mapped;

static unsigned class_of(uint64_t size)
{
    if (size <= SMALL_CLASSES * STEP)
        return (unsigned)((size - 1) / STEP);
    unsigned log = 63 - (unsigned)__builtin_clzll(size - 1);
    return SMALL_CLASSES + (log - LOG_SMALL) * 4 + ((size - 1) >> (log - 2) & 3);
}

static uint64_t size_of(unsigned class)
{
    if (class < SMALL_CLASSES)
        return (class + 1) * STEP;
    unsigned above = class - SMALL_CLASSES;
    return (uint64_t)(4 + above % 4 + 1) << (LOG_SMALL + above / 4 - 2);
}

static struct head *head_of(void *memory) { return (struct head *)memory - 1; }

bool arena_holds(const void *memory)
{
    return arena && (uintptr_t)memory - (uintptr_t)arena < mapped;
}

#ifdef __linux__
static bool map_up_to(uint8_t *at, uint64_t bytes)
{
    int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    while (mapped < bytes) {
        void *got = mmap(at + mapped, MAPPED_AT_ONCE, PROT_READ | PROT_WRITE, how, -1, 0);
        if (got != at + mapped) {
            if (got != MAP_FAILED) /* a kernel that takes the address for a wish */
                munmap(got, MAPPED_AT_ONCE);
            errno = got == MAP_FAILED ? errno : EEXIST;
            return false;
        }
        mapped += MAPPED_AT_ONCE;
    }
    return true;
}
#else
static bool map_up_to(uint8_t *at, uint64_t bytes)
{
    (void)at, (void)bytes;
    errno = ENOSYS;
    return false;
}
#endif

bool arena_open(uint64_t at)
{
    if (arena) {
        errno = EBUSY;
        return false;
    }
    struct arena *opened = (struct arena *)(uintptr_t)at;
    if (!map_up_to((uint8_t *)opened, sizeof *opened))
        return false;
    pthread_mutex_init(&opened->lock, NULL);
    opened->used = (sizeof *opened + STEP - 1) / STEP * STEP;
    arena = opened;
    return true;
}

bool arena_is_open(void) { return arena != NULL; }
uint64_t arena_used(void) { return arena ? arena->used : 0; }
uint64_t arena_trace(void) { return arena ? arena->trace : 0; }
bool arena_reach(uint64_t bytes) { return map_up_to((uint8_t *)arena, bytes); }

static void trace(uint64_t what) { arena->trace = (arena->trace ^ what) * 0x100000001B3u; }

/* A block; whether it was never used, and so is zeros. */
static void *block_of(unsigned class, bool *is_new)
{
    pthread_mutex_lock(&arena->lock);
    void *block = arena->spares[class];
    *is_new = !block;
    if (block) {
        arena->spares[class] = arena->spares[class]->next;
    } else if (map_up_to((uint8_t *)arena, arena->used + size_of(class))) {
        block = (uint8_t *)arena + arena->used;
        arena->used += size_of(class);
    }
    trace((uintptr_t)block + class);
    pthread_mutex_unlock(&arena->lock);
    return block;
}

static void *take(uint64_t align, uint64_t size, bool *is_new)
{
    uint64_t beside = sizeof(struct head) + (align > ALIGN ? align : 0);
    if (size > size_of(CLASSES - 1) - beside) {
        errno = ENOMEM;
        return NULL;
    }
    unsigned class = class_of(size + beside);
    uint8_t *block = block_of(class, is_new);
    if (!block) {
        errno = ENOMEM;
        return NULL;
    }
    uintptr_t at = ((uintptr_t)block + sizeof(struct head) + align - 1) / align * align;
    *head_of((void *)at) = (struct head){block, class};
    return (void *)at;
}

void *arena_take(size_t size)
{
    bool is_new;
    return arena ? take(ALIGN, size, &is_new) : (malloc)(size);
}

void *arena_zeros(size_t n, size_t size)
{
    bool is_new;
    if (!arena)
        return (calloc)(n, size);
    if (size && n > SIZE_MAX / size)
        return NULL;
    void *memory = take(ALIGN, n * size, &is_new);
    return memory && !is_new ? memset(memory, 0, n * size) : memory;
}

void arena_give(void *memory)
{
    if (!arena_holds(memory)) {
        (free)(memory);
        return;
    }
    const struct head head = *head_of(memory);
    struct spare *spare = head.block;
    pthread_mutex_lock(&arena->lock);
    spare->next = arena->spares[head.class];
    arena->spares[head.class] = spare;
    trace((uintptr_t)spare);
    pthread_mutex_unlock(&arena->lock);
}

void *arena_resize(void *old, size_t size)
{
    if (!old)
        return arena_take(size);
    if (!arena_holds(old))
        return (realloc)(old, size);
    const struct head *head = head_of(old);
    uint64_t room = size_of((unsigned)head->class) - (uint64_t)((uint8_t *)old - (uint8_t *)head->block);
    if (size <= room)
        return old;
    void *memory = arena_take(size);
    if (memory) {
        memcpy(memory, old, room);
        arena_give(old);
    }
    return memory;
}

int arena_take_aligned(void **memory, size_t align, size_t size)
{
    bool is_new;
    if (!arena)
        return (posix_memalign)(memory, align, size);
    void *found = take(align > ALIGN ? align : ALIGN, size, &is_new);
    if (found)
        *memory = found;
    return found ? 0 : ENOMEM;
}
