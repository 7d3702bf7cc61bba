/* Runs a program where it sees nothing but what it is shown, and leaves nothing behind.
 *
 *     room [WORD ...] -- PROGRAM ARGUMENT ...
 *     room --walls              tells which walls this kernel gives: namespaces landlock seccomp
 *
 *     --show PATH     it may read this, and run what is in it
 *     --names PATH    it may list this folder, which holds what it is shown
 *     --device PATH   it may read and write this device
 *     --desk PATH     it may write here: where there are namespaces into memory, for as long as it runs
 *     --proc          it has a /proc, of its own processes
 *     --strict        it may compute and answer, and nothing else: no process, no socket, no signal
 *     --anyway        it runs though too few walls can be put up for who is --strict
 *
 *     caller ── room ── process 1 ── PROGRAM     in namespaces of users, mounts, processes, network
 *                                                and messages: each dies with the one before it
 *     caller ── PROGRAM                          without namespaces: its rights are laid down at once
 *
 * There are three walls. With namespaces the machine's other files, processes and interfaces have no
 * names in there. Landlock forbids all files but those shown, whatever their names. The filter of
 * system calls, for who is --strict, leaves those that one needs who reads, computes and writes to
 * pipes it was given. What the kernel refuses is left out: who calls asks first (--walls).
 *
 * Exit code: the program's; of one that a signal ended 128 and the signal's number; 125 if the room
 * could not be made, which is told.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define UNMADE 125
#define ROOT "/proc" /* where the new root is put together; the old /proc is in nobody's way there */
#define DESK_OPTIONS "mode=0700,size=1g,nr_inodes=65536"

/* Of kernels newer than some headers. */
#define NR_MOUNT_SETATTR 442
#define NR_LANDLOCK_CREATE 444
#define NR_LANDLOCK_ADD 445
#define NR_LANDLOCK_RESTRICT 446
#define ATTR_RDONLY 1
#define ATTR_NOSUID 2
#define AT_ALL_BELOW 0x8000

enum kind { SHOW, NAMES, DEVICE, DESK };

struct place {
    enum kind kind;
    const char *path;
};

struct room {
    struct place *places;
    int count;
    bool has_proc, is_strict, is_anyway;
};

static bool fails(const char *what)
{
    fprintf(stderr, "room: %s: %s\n", what, strerror(errno));
    return false;
}

/* --- namespaces -------------------------------------------------------------------------------- */

static bool is_written(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool is_done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return is_done;
}

/* A user namespace first, root or not: in it nobody has a right over anything outside. Who calls is
 * himself in there, so that what is his to read is. */
static bool leave_namespaces(void)
{
    unsigned uid = geteuid(), gid = getegid();
    char users[64], groups[64];
    snprintf(users, sizeof users, "%u %u 1", uid, uid);
    snprintf(groups, sizeof groups, "%u %u 1", gid, gid);
    if (uid == 0)
        setgroups(0, NULL);
    return unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
                   CLONE_NEWUTS) == 0 &&
           is_written("/proc/self/setgroups", "deny") && is_written("/proc/self/uid_map", users) &&
           is_written("/proc/self/gid_map", groups);
}

static bool is_made_read_only(const char *path, bool with_all_below)
{
    struct { uint64_t set, clear, propagation, users; } how = {.set = ATTR_RDONLY | ATTR_NOSUID};
    int flags = with_all_below ? AT_ALL_BELOW : 0;
    if (syscall(NR_MOUNT_SETATTR, AT_FDCWD, path, flags, &how, sizeof how) == 0)
        return true;
    struct statvfs found; /* what it has been forbidden before cannot be allowed again */
    if (statvfs(path, &found))
        return false;
    unsigned long kept = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID;
    kept |= found.f_flag & ST_NODEV ? MS_NODEV : 0;
    kept |= found.f_flag & ST_NOEXEC ? MS_NOEXEC : 0;
    kept |= found.f_flag & ST_NOATIME ? MS_NOATIME : 0;
    kept |= found.f_flag & ST_NODIRATIME ? MS_NODIRATIME : 0;
    kept |= found.f_flag & ST_RELATIME ? MS_RELATIME : 0;
    return mount(NULL, path, NULL, kept, NULL) == 0;
}

/* The place of a path in the new root, with all folders that lead there. */
static const char *place_of(const char *path)
{
    static char place[PATH_MAX];
    if (snprintf(place, sizeof place, "%s%s", ROOT, path) >= (int)sizeof place)
        return NULL;
    for (char *at = place + sizeof ROOT; (at = strchr(at, '/')); *at++ = '/') {
        *at = '\0';
        mkdir(place, 0755);
    }
    return place;
}

/* What is not there is not shown. */
static bool is_shown(const char *path, bool is_device)
{
    struct stat found;
    const char *place = place_of(path);
    if (!place || stat(path, &found))
        return place != NULL;
    if (S_ISDIR(found.st_mode))
        mkdir(place, 0755);
    else {
        int fd = open(place, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0)
            close(fd);
    }
    if (mount(path, place, NULL, MS_BIND | MS_REC, NULL))
        return false;
    return is_device || is_made_read_only(place, true);
}

static bool has_desk(const char *path)
{
    const char *place = place_of(path);
    return place && (mkdir(place, 0700) == 0 || errno == EEXIST) &&
           mount("none", place, "tmpfs", MS_NOSUID | MS_NODEV, DESK_OPTIONS) == 0;
}

/* A /proc of its own; where a container hides parts of its own, the few files that programs ask. */
static bool has_processes(void)
{
    mkdir(ROOT "/proc", 0755);
    if (mount("proc", ROOT "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0)
        return true;
    return mount("none", ROOT "/proc", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=64k") == 0;
}

/* Called as process 1: put a root together of what is shown, and go there. */
static bool is_furnished(const struct room *room)
{
    /* What lies beneath has no name any more once the new root is on top of it. */
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("none", ROOT, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=4m"))
        return false;
    for (int pass = 0; pass < 2; pass++) /* desks first: something shown may lie in one */
        for (int i = 0; i < room->count; i++) {
            const struct place *one = &room->places[i];
            bool is_desk = one->kind == DESK;
            if (one->kind == NAMES || is_desk != (pass == 0))
                continue;
            if (!(is_desk ? has_desk(one->path) : is_shown(one->path, one->kind == DEVICE)))
                return false;
        }
    return (!room->has_proc || has_processes()) && chdir(ROOT) == 0 &&
           syscall(SYS_pivot_root, ".", ".") == 0 && umount2(".", MNT_DETACH) == 0 &&
           is_made_read_only("/", false) && chdir("/") == 0;
}

/* --- Landlock ---------------------------------------------------------------------------------- */

struct landlock_rights {
    uint64_t files, network, scopes;
};

struct landlock_below {
    uint64_t allowed;
    int32_t folder;
} __attribute__((packed));

#define FS_EXECUTE (1u << 0)
#define FS_WRITE (1u << 1)
#define FS_READ (1u << 2)
#define FS_LIST (1u << 3)
#define FS_TRUNCATE (1u << 14)

static long landlock_version(void) { return syscall(NR_LANDLOCK_CREATE, NULL, 0, 1); }

/* All there is to allow on files, as far as this kernel knows it. */
static uint64_t landlock_files(long version)
{
    int rights = version >= 5 ? 16 : version >= 3 ? 15 : version == 2 ? 14 : 13;
    return (1u << rights) - 1;
}

static bool is_allowed(int rules, const char *path, uint64_t rights)
{
    struct stat found;
    struct landlock_below rule = {.folder = open(path, O_PATH | O_CLOEXEC)};
    if (rule.folder < 0)
        return true; /* what is not there is not shown */
    const uint64_t of_files = FS_EXECUTE | FS_WRITE | FS_READ | FS_TRUNCATE;
    bool is_folder = fstat(rule.folder, &found) == 0 && S_ISDIR(found.st_mode);
    rule.allowed = is_folder ? rights : rights & of_files;
    bool is_done = syscall(NR_LANDLOCK_ADD, rules, 1, &rule, 0) == 0;
    close(rule.folder);
    return is_done;
}

static bool is_landlocked(const struct room *room)
{
    long version = landlock_version();
    uint64_t all = landlock_files(version);
    struct landlock_rights rights = {
        .files = all,
        .network = version >= 4 ? 3 : 0, /* to bind, to connect */
        .scopes = version >= 6 ? 3 : 0,  /* abstract sockets, signals */
    };
    size_t size = version >= 6 ? sizeof rights : version >= 4 ? 16 : 8;
    int rules = (int)syscall(NR_LANDLOCK_CREATE, &rights, size, 0);
    if (rules < 0)
        return false;
    bool is_done = true;
    for (int i = 0; i < room->count; i++) {
        static const uint64_t RIGHTS[] = {
            [SHOW] = FS_READ | FS_LIST | FS_EXECUTE,
            [NAMES] = FS_LIST,
            [DEVICE] = FS_READ | FS_WRITE,
            [DESK] = ~0ull,
        };
        const struct place *one = &room->places[i];
        is_done = is_done && is_allowed(rules, one->path, RIGHTS[one->kind] & all);
    }
    if (room->has_proc) /* of others' processes it may read what anybody may, and trace none */
        is_done = is_done && is_allowed(rules, "/proc", FS_READ | FS_LIST);
    is_done = is_done && syscall(NR_LANDLOCK_RESTRICT, rules, 0) == 0;
    close(rules);
    return is_done;
}

/* --- system calls ------------------------------------------------------------------------------ */

#if defined __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef ARCHITECTURE
#define ITSELF UINT32_MAX /* stands for its number, which is not known yet */
static const uint16_t FREE[] = {
    /* what was opened, and memory */
    SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_lseek, SYS_close, SYS_dup, SYS_dup3,
    SYS_mmap, SYS_mprotect, SYS_munmap, SYS_mremap, SYS_madvise, SYS_brk,
    /* to open what is shown */
    SYS_openat, SYS_newfstatat, SYS_fstat, SYS_statx, SYS_faccessat, SYS_readlinkat, SYS_getdents64,
    SYS_getcwd, SYS_execve,
    /* signals to itself, waiting, the time */
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack, SYS_futex,
    SYS_ppoll, SYS_pselect6, SYS_nanosleep, SYS_clock_nanosleep, SYS_clock_gettime,
    SYS_clock_getres, SYS_gettimeofday, SYS_sched_yield, SYS_restart_syscall,
    /* about itself */
    SYS_getpid, SYS_getppid, SYS_gettid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid,
    SYS_uname, SYS_sysinfo, SYS_getrusage, SYS_times, SYS_sched_getaffinity, SYS_getrandom,
    SYS_set_tid_address, SYS_set_robust_list, SYS_exit, SYS_exit_group,
#ifdef SYS_getrlimit
    SYS_getrlimit,
#endif
#ifdef SYS_rseq
    SYS_rseq,
#endif
#ifdef SYS_faccessat2
    SYS_faccessat2,
#endif
#ifdef __x86_64__
    SYS_open, SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_dup2, SYS_poll, SYS_select,
    SYS_time, SYS_arch_prctl,
#endif
};
/* Only with this argument: this process itself (0 says so too where limits are meant), and of what is
 * asked of a file nothing that would have the kernel send somebody a signal. */
static const struct narrow { uint16_t call, argument; uint32_t value; } NARROW[] = {
    {SYS_kill, 0, ITSELF}, {SYS_tgkill, 0, ITSELF}, {SYS_prlimit64, 0, 0},
    {SYS_fcntl, 1, F_DUPFD}, {SYS_fcntl, 1, F_DUPFD_CLOEXEC}, {SYS_fcntl, 1, F_GETFD},
    {SYS_fcntl, 1, F_SETFD}, {SYS_fcntl, 1, F_GETFL}, {SYS_fcntl, 1, F_SETFL},
    {SYS_ioctl, 1, TCGETS}, {SYS_ioctl, 1, TIOCGWINSZ}, {SYS_ioctl, 1, FIONREAD},
    {SYS_ioctl, 1, FIOCLEX}, {SYS_ioctl, 1, FIONBIO},
};
enum { FREE_COUNT = sizeof FREE / sizeof FREE[0], NARROW_COUNT = sizeof NARROW / sizeof NARROW[0] };
#define LOW_HALF (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : 4)

static bool is_filtered(void)
{
    enum { MAX = 8 + FREE_COUNT + 5 * NARROW_COUNT };
    struct sock_filter code[MAX];
    unsigned short n = 0;
    const struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_filter refuse = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    const unsigned number = offsetof(struct seccomp_data, nr);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    code[n++] = refuse;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number);
    for (int i = 0; i < FREE_COUNT; i++) { /* a jump reaches 255 instructions */
        unsigned char to = (unsigned char)(FREE_COUNT - i - 1 + 1);
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FREE[i], to, 0);
    }
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0);
    code[n++] = allow;
    for (int i = 0; i < NARROW_COUNT; i++) {
        const struct narrow *one = &NARROW[i];
        const unsigned at = offsetof(struct seccomp_data, args) + 8u * one->argument + LOW_HALF;
        const unsigned value = one->value == ITSELF ? (unsigned)getpid() : one->value;
        code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number);
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, one->call, 0, 3);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at);
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
        code[n++] = allow;
    }
    code[n++] = refuse;
    struct sock_fprog program = {.len = n, .filter = code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
#else
static bool is_filtered(void) { return errno = ENOSYS, false; }
#endif

/* --- putting up the walls ---------------------------------------------------------------------- */

/* All rights are given up in there; but who may make a room within, and is root, needs one that
 * gives no power over anything: a namespace whose user is root is made by nobody else. */
static bool has_no_rights(bool is_innermost)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct rights[2] = {{0}};
    bool keeps = !is_innermost && geteuid() == 0;
    for (int right = 0; right < 64; right++)
        if (!keeps || right != CAP_SETFCAP)
            prctl(PR_CAPBSET_DROP, right, 0, 0, 0); /* which only those can who have some */
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (keeps)
        rights[0].permitted = rights[0].effective = CAP_TO_MASK(CAP_SETFCAP);
    return syscall(SYS_capset, &header, rights) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

static void limit(int what, rlim_t most) { setrlimit(what, &(struct rlimit){most, most}); }

/* Whether a wall can be put up is tried by a process that then ends. */
static bool is_possible(bool (*try)(const struct room *), const struct room *room)
{
    pid_t tried = fork();
    if (tried == 0) {
        int silent = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(silent, 2);
        _exit(try(room) ? 0 : 1);
    }
    int status = 1;
    while (tried > 0 && waitpid(tried, &status, 0) < 0 && errno == EINTR)
        ;
    return tried > 0 && status == 0;
}

static bool has_namespaces(const struct room *room)
{
    int status = 1;
    if (!leave_namespaces())
        return false;
    pid_t first = fork();
    if (first == 0)
        _exit(is_furnished(room) ? 0 : 1);
    return first > 0 && waitpid(first, &status, 0) == first && status == 0;
}

static bool has_landlock(const struct room *room)
{
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && is_landlocked(room);
}

static bool has_filter(const struct room *room)
{
    return room && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && is_filtered();
}

/* The program itself, behind all walls there are. */
static int enter(const struct room *room, char **command, bool is_apart)
{
    bool can_lock = (room->is_strict || !is_apart) && is_possible(has_landlock, room);
    bool can_filter = room->is_strict && is_possible(has_filter, room);
    if (room->is_strict && !is_apart && !(can_lock && can_filter) && !room->is_anyway)
        return fails("walls"), UNMADE;
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (is_apart)
        setsid(); /* a signal to its group would reach who waits outside */
    if (!has_no_rights(room->is_strict || !is_apart))
        return fails("giving up rights"), UNMADE;
    limit(RLIMIT_CORE, 0);
    if (room->is_strict) {
        limit(RLIMIT_NOFILE, 64);
        limit(RLIMIT_FSIZE, 0);
        limit(RLIMIT_MEMLOCK, 0);
    }
    if (can_lock && !is_landlocked(room))
        return fails("Landlock"), UNMADE;
    if (can_filter && !is_filtered())
        return fails("seccomp"), UNMADE;
    execv(command[0], command);
    fails(command[0]);
    return UNMADE;
}

static int ended_as(pid_t child)
{
    for (int status; ; )
        if (waitpid(-1, &status, 0) == child) /* process 1 has others' orphans too */
            return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        else if (errno == ECHILD)
            return UNMADE;
}

static int enter_apart(const struct room *room, char **command)
{
    if (!leave_namespaces())
        return fails("namespaces"), UNMADE;
    pid_t first = fork();
    if (first != 0)
        return first < 0 ? UNMADE : ended_as(first);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (!is_furnished(room))
        return fails("what is shown"), UNMADE;
    pid_t program = fork();
    if (program == 0)
        return enter(room, command, true);
    if (program < 0 || !has_no_rights(true))
        return UNMADE;
    return ended_as(program);
}

static int tell_walls(const struct room *room)
{
    printf("%s%s%s\n", is_possible(has_namespaces, room) ? "namespaces " : "",
           is_possible(has_landlock, room) ? "landlock " : "",
           is_possible(has_filter, room) ? "seccomp" : "");
    return 0;
}

int main(int count, char **words)
{
    static const char *const KINDS[] = {"--show", "--names", "--device", "--desk"};
    struct room room = {.places = calloc((size_t)count, sizeof *room.places)};
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    for (int i = 1; i < count && room.places; i++) {
        if (strcmp(words[i], "--walls") == 0)
            return tell_walls(&room);
        if (strcmp(words[i], "--") == 0 && i + 1 < count)
            return is_possible(has_namespaces, &room) ? enter_apart(&room, words + i + 1)
                                                      : enter(&room, words + i + 1, false);
        room.has_proc |= strcmp(words[i], "--proc") == 0;
        room.is_strict |= strcmp(words[i], "--strict") == 0;
        room.is_anyway |= strcmp(words[i], "--anyway") == 0;
        for (int kind = SHOW; kind <= DESK && i + 1 < count; kind++)
            if (strcmp(words[i], KINDS[kind]) == 0) {
                room.places[room.count++] = (struct place){(enum kind)kind, words[++i]};
                break;
            }
    }
    fputs("room [WORD ...] -- PROGRAM ARGUMENT ...\n", stderr);
    return UNMADE;
}
