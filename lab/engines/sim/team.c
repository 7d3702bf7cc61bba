#include "team.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

/* macOS has nothing of the kind that may be called: there who sleeps does so at a condition. */
#ifndef __APPLE__
#define HAS_FUTEX
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

#define SPINS_MAX 4000u /* looks before it sleeps: tens of microseconds */

struct word { /* that others wait for, alone in its cache lines */
    _Alignas(128) atomic_uint value;
    atomic_uint asleep; /* who waits for it so */
#ifndef HAS_FUTEX
    pthread_mutex_t lock;
    pthread_cond_t changed;
#endif
};

struct team {
    struct word round, left; /* left: who still works in this round */
    team_fn work;
    void *context;
    unsigned size, spins;
    atomic_bool is_over;
    struct member {
        struct team *team;
        unsigned number;
        pthread_t thread;
    } members[];
};

#ifdef HAS_FUTEX
static void word_init(struct word *word) { (void)word; }

static void sleep_while(struct word *word, unsigned value)
{
    syscall(SYS_futex, &word->value, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake_all(struct word *word)
{
    syscall(SYS_futex, &word->value, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
#else
static void word_init(struct word *word)
{
    pthread_mutex_init(&word->lock, NULL);
    pthread_cond_init(&word->changed, NULL);
}

static void sleep_while(struct word *word, unsigned value)
{
    pthread_mutex_lock(&word->lock);
    if (atomic_load(&word->value) == value)
        pthread_cond_wait(&word->changed, &word->lock);
    pthread_mutex_unlock(&word->lock);
}

static void wake_all(struct word *word)
{
    pthread_mutex_lock(&word->lock); /* who saw the old value is asleep by now */
    pthread_cond_broadcast(&word->changed);
    pthread_mutex_unlock(&word->lock);
}
#endif

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Wait until the word is not `value` any more; what it is then. */
static unsigned wait_while(struct word *word, unsigned value, unsigned *spins)
{
    unsigned now;
    for (; *spins > 0; --*spins, relax())
        if ((now = atomic_load_explicit(&word->value, memory_order_acquire)) != value)
            return now;
    atomic_fetch_add(&word->asleep, 1);
    while ((now = atomic_load(&word->value)) == value)
        sleep_while(word, value);
    atomic_fetch_sub(&word->asleep, 1);
    return now;
}

/* After the word was changed: whoever fell asleep before saw the old value. */
static void wake(struct word *word)
{
    if (atomic_load(&word->asleep))
        wake_all(word);
}

static void *live(void *argument)
{
    const struct member *member = argument;
    struct team *team = member->team;
    for (unsigned round = 0;;) {
        unsigned spins = team->spins;
        round = wait_while(&team->round, round, &spins);
        if (atomic_load(&team->is_over))
            return NULL;
        team->work(team->context, member->number);
        if (atomic_fetch_sub(&team->left.value, 1) == 1)
            wake(&team->left);
    }
}

struct team *team_new(unsigned size, team_fn work, void *context)
{
    struct team *team = NULL;
    if (posix_memalign((void **)&team, _Alignof(struct word),
                       sizeof *team + size * sizeof *team->members))
        return NULL;
    *team = (struct team){.work = work, .context = context, .size = 1};
    word_init(&team->round);
    word_init(&team->left);
    team->spins = size <= (unsigned)sysconf(_SC_NPROCESSORS_ONLN) ? SPINS_MAX : 0;
    for (; team->size < size; team->size++) {
        struct member *member = &team->members[team->size];
        *member = (struct member){.team = team, .number = team->size};
        if (pthread_create(&member->thread, NULL, live, member) != 0) {
            team_free(team);
            return NULL;
        }
    }
    return team;
}

static void begin(struct team *team)
{
    atomic_store(&team->left.value, team->size - 1);
    atomic_fetch_add(&team->round.value, 1);
    wake(&team->round);
}

bool team_round(struct team *team, unsigned spins)
{
    begin(team);
    team->work(team->context, 0);
    unsigned left;
    spins = team->spins ? spins : 0;
    while ((left = atomic_load_explicit(&team->left.value, memory_order_acquire)) != 0)
        wait_while(&team->left, left, &spins);
    return spins > 0 || !team->spins;
}

void team_free(struct team *team)
{
    if (!team)
        return;
    atomic_store(&team->is_over, true);
    begin(team);
    for (unsigned i = 1; i < team->size; i++)
        pthread_join(team->members[i].thread, NULL);
    free(team);
}
