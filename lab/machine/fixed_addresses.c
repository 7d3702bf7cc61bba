/* Loading a shared object where one wants it: for as long as that takes, all other room is taken.
 *
 * The loader asks the kernel for room anywhere, and the kernel gives the highest that is large enough.
 * So whatever is free above and below is mapped, forbidden to all, and let go again; the heap keeps
 * room behind it, and the stack in front, for the loader needs some of both.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define GAPS_MAX 65536u
#define SMALL ((uint64_t)64 << 10) /* a shared object of ours is larger */
#define HEAP_ROOM ((uint64_t)1 << 30)
#define STACK_ROOM ((uint64_t)64 << 20)

struct gap {
    uint64_t from, to;
};

static struct gap gaps[GAPS_MAX];
static unsigned n_gaps;

static void add(uint64_t from, uint64_t to)
{
    if (to > from && to - from >= SMALL && n_gaps < GAPS_MAX)
        gaps[n_gaps++] = (struct gap){from, to};
}

/* All that is free, but for what lies from `at` on. */
static bool find_gaps(uint64_t at, uint64_t room)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4352];
    uint64_t end = SMALL, from, to;
    if (!maps)
        return false;
    n_gaps = 0;
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64, &from, &to) != 2)
            continue;
        uint64_t free_to = strstr(line, "[stack]") ? from - STACK_ROOM : from;
        if (end <= at && free_to >= at + room) {
            add(end, at);
            add(at + room, free_to);
        } else {
            add(end, free_to);
        }
        end = strstr(line, "[heap]") ? to + HEAP_ROOM : to;
        if (strstr(line, "[stack]"))
            break; /* above it is the kernel's */
    }
    fclose(maps);
    return n_gaps < GAPS_MAX;
}

/* Where it is loaded then, its first byte; 0, and *problem tells, if it is not. Whoever had it loaded
 * before has it where it was. */
uint64_t load_at(const char *path, uint64_t at, uint64_t room, const char **problem)
{
    const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    struct link_map *map = NULL;
    unsigned taken = 0;
    if (!find_gaps(at, room)) {
        *problem = "what is mapped cannot be read";
        return 0;
    }
    for (; taken < n_gaps; taken++) {
        struct gap *gap = &gaps[taken];
        if (mmap((void *)(uintptr_t)gap->from, gap->to - gap->from, PROT_NONE, how, -1, 0) == MAP_FAILED)
            break;
    }
    int failed = taken < n_gaps ? errno : 0;
    void *loaded = failed ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    for (unsigned i = 0; i < taken; i++)
        munmap((void *)(uintptr_t)gaps[i].from, gaps[i].to - gaps[i].from);
    if (!loaded || dlinfo(loaded, RTLD_DI_LINKMAP, &map) != 0) {
        *problem = failed ? strerror(failed) : dlerror();
        return 0;
    }
    return map->l_addr;
}
