/* Loaded into a program (LD_PRELOAD), makes its clocks the fabric's, which pass more slowly.
 *
 * CLOSLAB_FABRIC_CLOCK is "MONOTONIC WALL": from what the two clocks of this machine showed
 * then, in nanoseconds, time passes CLOSLAB_DILATION times more slowly. A time to wait until is
 * made one of the machine's; a time to wait for stays what it is, for most such waits are for
 * what the machine does.
 *
 * Processors count cycles, and programs that measure (perftest) read that count themselves.
 * Once a program asks for RDMA devices, the kernel is told to stop it at each such reading, and
 * it is handed what the fabric's time makes of it (x86-64 only).
 *
 * A program that finds out how fast a processor counts reads a clock over and over until some
 * thousandths of a second have passed, of which each would last minutes here. To one that does
 * nothing but read a clock, time is let pass more quickly; cycles with it.
 *
 * What programs of a job say to each other first is said as soon as they are there: a
 * connection to a host that is refused is tried again for a while. Programs that are linked
 * statically do not hear of all this.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000LL
#define SPINS 64          /* readings one right after the other: then nothing else is done */
#define RIGHT_AFTER 20000 /* real nanoseconds */
#define SPIN_STEP 2000    /* fabric nanoseconds, that pass at each further one */
#define PATIENCE 200      /* times that a connection is tried, */
#define PATIENCE_NS 50000000 /* so long after another */

static int64_t dilation = 1, from, from_wall;
static bool is_on;
static int64_t skipped; /* real nanoseconds that were let pass beside the clock; atomic */
static __thread int64_t last_read;
static __thread unsigned spins;

__attribute__((constructor)) static void begin(void)
{
    const char *given = getenv("CLOSLAB_FABRIC_CLOCK"), *slower = getenv("CLOSLAB_DILATION");
    long long monotonic, wall;
    if (!given || !slower || sscanf(given, "%lld %lld", &monotonic, &wall) != 2)
        return;
    dilation = (int64_t)strtod(slower, NULL);
    from = monotonic;
    from_wall = wall;
    is_on = dilation > 1;
}

static int64_t machine_ns(void)
{
    struct timespec t;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static int64_t skipped_now(void) { return __atomic_load_n(&skipped, __ATOMIC_RELAXED); }

/* Fabric nanoseconds since the job began. */
static int64_t passed(void)
{
    int64_t now = machine_ns();
    spins = now - last_read < RIGHT_AFTER ? spins + 1 : 0;
    last_read = now;
    if (spins > SPINS)
        __atomic_fetch_add(&skipped, SPIN_STEP * dilation, __ATOMIC_RELAXED);
    return (now - from + skipped_now()) / dilation;
}

static struct timespec time_of(int64_t ns)
{
    return (struct timespec){(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
}

static bool is_wall(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
}

static bool is_fabric(clockid_t clock)
{
    return is_on && (is_wall(clock) || clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW ||
                     clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_BOOTTIME);
}

/* --- what the time is ------------------------------------------------------------------------- */

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (!is_fabric(clock))
        return syscall(SYS_clock_gettime, clock, now) ? -1 : 0;
    *now = time_of((is_wall(clock) ? from_wall : from) + passed());
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec t;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &t);
    *now = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *now)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (now)
        *now = t.tv_sec;
    return t.tv_sec;
}

/* --- waiting until then ----------------------------------------------------------------------- */

#define NEXT(name) \
    static __typeof__(name) *next; \
    if (!next) \
        next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

/* On this machine's clock of that kind. */
static struct timespec on_machine(clockid_t clock, const struct timespec *until)
{
    struct timespec now;
    int64_t fabric = (is_wall(clock) ? from_wall : from) + passed();
    int64_t left = (until->tv_sec * NS_PER_S + until->tv_nsec - fabric);
    syscall(SYS_clock_gettime, clock, &now);
    if (left < 0)
        left = 0;
    if (left > INT64_MAX / 4 / dilation)
        left = INT64_MAX / 4 / dilation;
    return time_of(now.tv_sec * NS_PER_S + now.tv_nsec + left * dilation);
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left)
{
    NEXT(clock_nanosleep);
    if (!(flags & TIMER_ABSTIME) || !is_fabric(clock))
        return next(clock, flags, until, left);
    struct timespec then = on_machine(clock, until);
    return next(clock, flags, &then, left);
}

int sem_timedwait(sem_t *restrict sem, const struct timespec *restrict until)
{
    NEXT(sem_timedwait);
    if (!is_on)
        return next(sem, until);
    struct timespec then = on_machine(CLOCK_REALTIME, until);
    return next(sem, &then);
}

int sem_clockwait(sem_t *restrict sem, clockid_t clock, const struct timespec *restrict until)
{
    NEXT(sem_clockwait);
    if (!is_fabric(clock))
        return next(sem, clock, until);
    struct timespec then = on_machine(clock, until);
    return next(sem, clock, &then);
}

int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict until)
{
    NEXT(pthread_mutex_timedlock);
    if (!is_on)
        return next(mutex, until);
    struct timespec then = on_machine(CLOCK_REALTIME, until);
    return next(mutex, &then);
}

int pthread_cond_clockwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           clockid_t clock, const struct timespec *restrict until)
{
    NEXT(pthread_cond_clockwait);
    if (!is_on)
        return next(cond, mutex, clock, until);
    struct timespec then = on_machine(clock, until);
    return next(cond, mutex, clock, &then);
}

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until)
{
    static int (*next)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    if (!next) { /* an older one of that name takes another kind of condition */
        void *found = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
        next = (__typeof__(next))(found ? found : dlsym(RTLD_NEXT, "pthread_cond_timedwait"));
    }
    if (!is_on)
        return next(cond, mutex, until);
    bool of_day = until->tv_sec > from_wall / NS_PER_S / 2; /* by which, the condition knows */
    struct timespec then = on_machine(of_day ? CLOCK_REALTIME : CLOCK_MONOTONIC, until);
    return next(cond, mutex, &then);
}

/* --- cycles ----------------------------------------------------------------------------------- */

#if defined(__x86_64__)
#include <ucontext.h>
#include <x86intrin.h>

static uint64_t cycles_from;
static int64_t cycles_from_ns;
static struct sigaction before;

static uint64_t fabric_cycles(void)
{
    uint64_t counted = __rdtsc() - cycles_from;
    int64_t ns = machine_ns() - cycles_from_ns;
    double a_ns = ns > 0 ? (double)counted / (double)ns : 1;
    return cycles_from +
           (uint64_t)(((double)counted + (double)skipped_now() * a_ns) / (double)dilation);
}

static void read_instead(int number, siginfo_t *about, void *given)
{
    ucontext_t *context = given;
    greg_t *registers = context->uc_mcontext.gregs;
    const uint8_t *code = (const uint8_t *)(uintptr_t)registers[REG_RIP];
    bool is_fault = about->si_code == SI_KERNEL; /* protection, not a page that is not there */
    bool plain = is_fault && code[0] == 0x0F && code[1] == 0x31;
    bool with_place = is_fault && code[0] == 0x0F && code[1] == 0x01 && code[2] == 0xF9;
    if (!plain && !with_place) {
        sigaction(number, &before, NULL); /* the program's own fault, which happens again now */
        return;
    }
    int saved = errno;
    prctl(PR_SET_TSC, PR_TSC_ENABLE);
    uint64_t cycles = fabric_cycles();
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
    errno = saved;
    registers[REG_RAX] = (greg_t)(cycles & UINT32_MAX);
    registers[REG_RDX] = (greg_t)(cycles >> 32);
    if (with_place)
        registers[REG_RCX] = 0;
    registers[REG_RIP] += with_place ? 3 : 2;
}

static void let_read(void) { prctl(PR_SET_TSC, PR_TSC_ENABLE); }

void closlab_clock_begin(void)
{
    static bool begun;
    struct sigaction ours = {.sa_sigaction = read_instead, .sa_flags = SA_SIGINFO | SA_NODEFER};
    if (!is_on || begun)
        return;
    begun = true;
    cycles_from = __rdtsc();
    cycles_from_ns = machine_ns();
    sigemptyset(&ours.sa_mask);
    pthread_atfork(NULL, NULL, let_read);
    if (sigaction(SIGSEGV, &ours, &before) || prctl(PR_SET_TSC, PR_TSC_SIGSEGV))
        fprintf(stderr, "closlab: cycles are this machine's, for the kernel does not stop it: "
                        "what is computed from them is not the fabric's\n");
}
#else
void closlab_clock_begin(void) {}
#endif

/* --- meeting ---------------------------------------------------------------------------------- */

/* Whether it may be of the job, and not there yet. By other kinds of sockets and the loop programs
 * only ask whether something runs on this machine, such as a screen (hwloc, for MPI). */
static bool is_on_fabric(const struct sockaddr *to)
{
    if (to->sa_family == AF_INET)
        return *(const uint8_t *)&((const struct sockaddr_in *)to)->sin_addr != IN_LOOPBACKNET;
    return to->sa_family == AF_INET6 &&
           !IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)to)->sin6_addr);
}

int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t size)
{
    NEXT(connect);
    const struct timespec nap = {0, PATIENCE_NS};
    int code = next(fd, to, size);
    bool waits = is_on && code && is_on_fabric(to.__sockaddr__);
    for (unsigned i = 0; waits && code && errno == ECONNREFUSED && i < PATIENCE; i++) {
        nanosleep(&nap, NULL);
        code = next(fd, to, size);
    }
    return code;
}
