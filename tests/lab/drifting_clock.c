/* Loaded into a program (LD_PRELOAD), makes its monotonic clock pass by a share more quickly.
 *
 * CLOSLAB_TESTS_DRIFT is "FROM SHARE": since that clock showed FROM, in nanoseconds. What is waited
 * for until a time is waited for until then. Only what is linked dynamically hears of it, which all of a
 * part's processes are.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int64_t from;
static double share;

__attribute__((constructor)) static void begin(void)
{
    const char *given = getenv("CLOSLAB_TESTS_DRIFT");
    long long since;
    if (given && sscanf(given, "%lld %lf", &since, &share) == 2)
        from = since;
}

static int drifts(clockid_t clock)
{
    return clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_MONOTONIC_COARSE;
}

static int64_t ns_of(struct timespec t) { return t.tv_sec * 1000000000LL + t.tv_nsec; }

static struct timespec time_of(int64_t ns)
{
    return (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (syscall(SYS_clock_gettime, clock, now))
        return -1;
    if (drifts(clock))
        *now = time_of(ns_of(*now) + (int64_t)((double)(ns_of(*now) - from) * share));
    return 0;
}

static struct timespec really(clockid_t clock, const struct timespec *until)
{
    if (!drifts(clock))
        return *until;
    return time_of(from + (int64_t)((double)(ns_of(*until) - from) / (1 + share)));
}

#define NEXT(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left)
{
    struct timespec then = flags & TIMER_ABSTIME ? really(clock, until) : *until;
    return NEXT(clock_nanosleep)(clock, flags, &then, left);
}

int sem_clockwait(sem_t *restrict sem, clockid_t clock, const struct timespec *restrict until)
{
    struct timespec then = really(clock, until);
    return NEXT(sem_clockwait)(sem, clock, &then);
}

int pthread_cond_clockwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           clockid_t clock, const struct timespec *restrict until)
{
    struct timespec then = really(clock, until);
    return NEXT(pthread_cond_clockwait)(cond, mutex, clock, &then);
}
