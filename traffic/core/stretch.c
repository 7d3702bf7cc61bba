/* Loaded into a program (LD_PRELOAD), lets it compute as if its processor were slower.
 *
 * Time on an emulated fabric passes more slowly than it should, and a program that computes at full
 * speed would be too quick for it. So from a thread's one network call to its next, it is counted how
 * much of a processor it took, and before the next it sleeps CLOSLAB_STRETCH - 1 times as long. What
 * calls themselves take is the kernel's work and not counted, nor is what a program does before it
 * has first connected or accepted: what it reads and sets up is no part of its work. Programs that
 * are linked statically do not hear of this.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000
#define MIN_NS 100000 /* a shorter sleep would last as long: it is owed until there is more */

static double times; /* how much longer; read once */
static bool is_connected;
static __thread int64_t since = -1; /* processor time of this thread when its last call returned */
static __thread double owed;

__attribute__((constructor)) static void begin(void)
{
    const char *given = getenv("CLOSLAB_STRETCH");
    times = given ? strtod(given, NULL) : 1;
}

static int64_t used(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* Before a call. `errno` is the program's. */
static void pay(void)
{
    if (since < 0 || !__atomic_load_n(&is_connected, __ATOMIC_RELAXED))
        return;
    int64_t computed = used() - since;
    owed += computed > 0 ? (double)computed * (times - 1) : 0; /* less than 0: it has forked */
    if (owed < MIN_NS)
        return;
    int saved = errno;
    struct timespec left = {(time_t)(owed / NS_PER_S), (long)owed % NS_PER_S};
    while (nanosleep(&left, &left) && errno == EINTR)
        ;
    owed = 0;
    errno = saved;
}

static void resume(void) { since = used(); }

static bool is_socket(int fd)
{
    struct stat what;
    int saved = errno;
    bool is = fstat(fd, &what) == 0 && S_ISSOCK(what.st_mode);
    errno = saved;
    return is;
}

#define NEXT(name) \
    static __typeof__(name) *next; \
    if (!next) \
        next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

#define CALL(type, call) \
    pay(); \
    type result = call; \
    resume(); \
    return result

/* A call that is about the network. */
#define NETWORK(type, name, parameters, arguments) \
    type name parameters \
    { \
        NEXT(name); \
        CALL(type, next arguments); \
    }

/* One that may be. */
#define FILE_OR_SOCKET(name, parameters, arguments) \
    ssize_t name parameters \
    { \
        NEXT(name); \
        if (!is_socket(fd)) \
            return next arguments; \
        CALL(ssize_t, next arguments); \
    }

/* One after which it is. */
#define MEETING(name, parameters, arguments) \
    int name parameters \
    { \
        NEXT(name); \
        int result = next arguments; \
        __atomic_store_n(&is_connected, true, __ATOMIC_RELAXED); \
        resume(); \
        return result; \
    }

MEETING(connect, (int fd, __CONST_SOCKADDR_ARG to, socklen_t size), (fd, to, size))
MEETING(accept, (int fd, __SOCKADDR_ARG from, socklen_t *size), (fd, from, size))
MEETING(accept4, (int fd, __SOCKADDR_ARG from, socklen_t *size, int flags),
        (fd, from, size, flags))

NETWORK(ssize_t, send, (int fd, const void *data, size_t size, int flags), (fd, data, size, flags))
NETWORK(ssize_t, sendto,
        (int fd, const void *data, size_t size, int flags, __CONST_SOCKADDR_ARG to, socklen_t n),
        (fd, data, size, flags, to, n))
NETWORK(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
NETWORK(ssize_t, recv, (int fd, void *data, size_t size, int flags), (fd, data, size, flags))
NETWORK(ssize_t, recvfrom,
        (int fd, void *data, size_t size, int flags, __SOCKADDR_ARG from, socklen_t *n),
        (fd, data, size, flags, from, n))
NETWORK(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))

FILE_OR_SOCKET(read, (int fd, void *data, size_t size), (fd, data, size))
FILE_OR_SOCKET(write, (int fd, const void *data, size_t size), (fd, data, size))
FILE_OR_SOCKET(readv, (int fd, const struct iovec *parts, int n), (fd, parts, n))
FILE_OR_SOCKET(writev, (int fd, const struct iovec *parts, int n), (fd, parts, n))

NETWORK(int, poll, (struct pollfd *files, nfds_t n, int timeout), (files, n, timeout))
NETWORK(int, ppoll,
        (struct pollfd *files, nfds_t n, const struct timespec *limit, const sigset_t *mask),
        (files, n, limit, mask))
NETWORK(int, select, (int n, fd_set *in, fd_set *out, fd_set *other, struct timeval *limit),
        (n, in, out, other, limit))
NETWORK(int, epoll_wait, (int fd, struct epoll_event *events, int most, int timeout),
        (fd, events, most, timeout))
NETWORK(int, epoll_pwait,
        (int fd, struct epoll_event *events, int most, int timeout, const sigset_t *mask),
        (fd, events, most, timeout, mask))
