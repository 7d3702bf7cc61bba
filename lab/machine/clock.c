/* Loaded into a program (LD_PRELOAD), lets the time of day jump, as whoever sets a clock makes it.
 *
 * CLOSLAB_CLOCK_JUMPS is AT:BY,AT:BY,...: from second AT of the monotonic clock on, which all
 * processes share and nobody sets, the time of day is BY seconds off the machine's. Whoever waits
 * until a time of day is let wait until that on the machine's clock; a jump meanwhile is not seen by
 * that wait. Programs that are linked statically do not hear of this.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000LL
#define JUMPS_MAX 64
#define NOT_SINCE_A_START 1000000000 /* seconds: such a time is one of day */

static struct { int64_t at_ns, by_ns; } jumps[JUMPS_MAX];
static int count;

static int64_t ns_of(const struct timespec *t) { return t->tv_sec * NS_PER_S + t->tv_nsec; }

static struct timespec time_of(int64_t ns)
{
    return (struct timespec){(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
}

__attribute__((constructor)) static void begin(void)
{
    const char *given = getenv("CLOSLAB_CLOCK_JUMPS");
    char *rest;
    while (given && *given && count < JUMPS_MAX) {
        jumps[count].at_ns = (int64_t)(strtod(given, &rest) * NS_PER_S);
        if (*rest != ':')
            return;
        jumps[count++].by_ns = (int64_t)(strtod(rest + 1, &rest) * NS_PER_S);
        given = *rest == ',' ? rest + 1 : "";
    }
}

/* How far off the clock is now. By the kernel itself, for what is below is ours. */
static int64_t off(void)
{
    struct timespec now;
    int64_t by_ns = 0;
    if (!count)
        return 0;
    static int (*next)(clockid_t, struct timespec *);
    if (!next)
        next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    next(CLOCK_MONOTONIC, &now);
    for (int i = 0; i < count && jumps[i].at_ns <= ns_of(&now); i++)
        by_ns = jumps[i].by_ns;
    return by_ns;
}

static bool is_settable(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
}

static struct timespec on_machine(const struct timespec *given)
{
    int64_t ns = ns_of(given) - off();
    return time_of(ns < 0 ? 0 : ns);
}

#define NEXT(name) \
    static __typeof__(name) *next; \
    if (!next) \
        next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

/* --- what the time is --------------------------------------------------------------------------- */

int clock_gettime(clockid_t clock, struct timespec *now)
{
    NEXT(clock_gettime);
    int failed = next(clock, now);
    if (!failed && count && is_settable(clock))
        *now = time_of(ns_of(now) + off());
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec t;
    (void)zone;
    int failed = clock_gettime(CLOCK_REALTIME, &t);
    *now = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
    return failed;
}

time_t time(time_t *now)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (now)
        *now = t.tv_sec;
    return t.tv_sec;
}

/* --- waiting until then ------------------------------------------------------------------------- */

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left)
{
    NEXT(clock_nanosleep);
    if (!(flags & TIMER_ABSTIME) || !is_settable(clock))
        return next(clock, flags, until, left);
    struct timespec then = on_machine(until);
    return next(clock, flags, &then, left);
}

int sem_timedwait(sem_t *restrict sem, const struct timespec *restrict until)
{
    NEXT(sem_timedwait);
    struct timespec then = on_machine(until);
    return next(sem, &then);
}

int sem_clockwait(sem_t *restrict sem, clockid_t clock, const struct timespec *restrict until)
{
    NEXT(sem_clockwait);
    struct timespec then = is_settable(clock) ? on_machine(until) : *until;
    return next(sem, clock, &then);
}

int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict until)
{
    NEXT(pthread_mutex_timedlock);
    struct timespec then = on_machine(until);
    return next(mutex, &then);
}

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until)
{
    static int (*next)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    if (!next) { /* an older one of that name takes another kind of condition */
        void *found = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
        next = (__typeof__(next))(found ? found : dlsym(RTLD_NEXT, "pthread_cond_timedwait"));
    }
    /* Which clock it goes by stands in the condition; only one of them has come so far. */
    struct timespec then = until->tv_sec > NOT_SINCE_A_START ? on_machine(until) : *until;
    return next(cond, mutex, &then);
}

int pthread_cond_clockwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           clockid_t clock, const struct timespec *restrict until)
{
    NEXT(pthread_cond_clockwait);
    struct timespec then = is_settable(clock) ? on_machine(until) : *until;
    return next(cond, mutex, clock, &then);
}

/* Some libraries ask the kernel for that themselves. */
long syscall(long number, ...)
{
    static long (*next)(long, ...);
    long given[6];
    va_list all;
    va_start(all, number);
    for (int i = 0; i < 6; i++)
        given[i] = va_arg(all, long);
    va_end(all);
    if (!next)
        next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    struct timespec then;
    bool is_until = given[1] & FUTEX_CLOCK_REALTIME && (given[1] & FUTEX_CMD_MASK) != FUTEX_WAIT;
    if (number == SYS_futex && is_until && given[3]) {
        then = on_machine((const struct timespec *)given[3]);
        given[3] = (long)&then;
    }
    return next(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}
