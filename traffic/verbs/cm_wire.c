/* The thread that listens, connects, and hears what peers say. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cm.h"

enum {
    MAGIC = 0x434D3031,
    TRIES = 200, /* nobody listens yet: a job's programs begin together */
    AGAIN_MS = 50,
};

struct cm_id *cm_ids;
unsigned cm_destroyed;
static int wake = -1;

static long long now_ms(void)
{
    struct timespec t;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t); /* the library's may be the fabric's */
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

socklen_t cm_size(const struct sockaddr *address)
{
    return address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                          : sizeof(struct sockaddr_in);
}

void cm_compose(struct cm_id *id, enum cm_word word, const struct rdma_conn_param *param)
{
    const struct cm_message *theirs = &id->theirs;
    const struct rdma_conn_param as_asked = {.responder_resources = theirs->reads_out,
                                             .initiator_depth = theirs->reads_in,
                                             .rnr_retry_count = theirs->rnr_retries};
    const struct rdma_conn_param *p = param ? param : &as_asked;
    struct ibv_port_attr port = {.active_mtu = IBV_MTU_256};
    if (id->base.verbs)
        ibv_query_port(id->base.verbs, CM_PORT, &port);
    struct cm_message *ours = &id->ours;
    *ours = (struct cm_message){
        .magic = MAGIC,
        .word = word,
        .qpn = id->base.qp ? id->base.qp->qp_num : p->qp_num,
        .qkey = RDMA_UDP_QKEY,
        .mtu = (uint32_t)port.active_mtu,
        .reads_in = p->responder_resources,
        .reads_out = p->initiator_depth,
        .retries = word == CM_REQ ? p->retry_count : theirs->retries,
        .rnr_retries = p->rnr_retry_count,
        .srq = id->base.srq ? 1 : p->srq,
        .is_datagram = id->base.ps == RDMA_PS_UDP,
        .private_length = p->private_data ? p->private_data_len : 0,
    };
    ours->psn = cm_psn(ours->qpn);
    if (p->private_data)
        memcpy(ours->private_data, p->private_data, ours->private_length);
}

/* Whatever the kernel takes is whole: these are some hundred bytes on a fresh connection. */
static bool say(const struct cm_id *id, const struct cm_message *what)
{
    return send(id->fd, what, sizeof *what, MSG_NOSIGNAL) == (ssize_t)sizeof *what;
}

bool cm_send(const struct cm_id *id) { return say(id, &id->ours); }

bool cm_send_word(const struct cm_id *id, enum cm_word word)
{
    const struct cm_message message = {.magic = MAGIC, .word = word};
    return say(id, &message);
}

/* What is closed while the thread waits for it ends only when that waits no more: a port would be
 * taken, and the peer not be told, until something else happens. */
void cm_hang_up(struct cm_id *id)
{
    if (id->fd >= 0) {
        shutdown(id->fd, SHUT_RDWR);
        close(id->fd);
    }
    id->fd = -1;
}

/* --- connecting ------------------------------------------------------------------------------- */

static void give_up(struct cm_id *id, int event, int status)
{
    cm_hang_up(id);
    id->state = CM_BOUND;
    id->theirs = (struct cm_message){0};
    cm_tell(id, event, status);
}

static void connect_again(struct cm_id *id)
{
    struct sockaddr_storage from = id->base.route.addr.src_storage;
    const struct sockaddr *to = &id->base.route.addr.dst_addr;
    const int any_port = 0;
    cm_hang_up(id);
    id->again_at = 0;
    if (from.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&from)->sin6_port = any_port;
    else
        ((struct sockaddr_in *)&from)->sin_port = any_port;
    id->fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (id->fd < 0 || bind(id->fd, (void *)&from, cm_size((void *)&from)) ||
        (syscall(SYS_connect, id->fd, to, cm_size(to)) && errno != EINPROGRESS))
        give_up(id, RDMA_CM_EVENT_UNREACHABLE, -errno);
}

/* Nobody listens yet, or who did has gone without a word. */
static void try_again(struct cm_id *id)
{
    if (id->tries++ == TRIES) {
        give_up(id, RDMA_CM_EVENT_REJECTED, REJECTED_NOBODY);
        return;
    }
    cm_hang_up(id);
    id->state = CM_CONNECTS;
    id->again_at = now_ms() + AGAIN_MS;
    id->come = 0;
}

static void ask(struct cm_id *id)
{
    id->state = CM_ASKED;
    if (!cm_send(id))
        try_again(id);
}

static void connected(struct cm_id *id)
{
    int code = 0;
    socklen_t size = sizeof code;
    getsockopt(id->fd, SOL_SOCKET, SO_ERROR, &code, &size);
    if (!code)
        ask(id);
    else if (code == ECONNREFUSED || code == ECONNRESET)
        try_again(id);
    else
        give_up(id, RDMA_CM_EVENT_UNREACHABLE, -code);
}

/* --- being connected to ----------------------------------------------------------------------- */

/* One has come, of which it is not known yet who it is and what it wants. */
static void take_one(struct cm_id *listener)
{
    struct rdma_addr *addr;
    socklen_t size = sizeof(struct sockaddr_storage), other = size;
    int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct cm_id *id = fd < 0 ? NULL : calloc(1, sizeof *id);
    if (!id) {
        if (fd >= 0)
            close(fd);
        return;
    }
    id->fd = fd;
    id->state = CM_IDLE;
    id->listener = listener;
    id->base.ps = listener->base.ps;
    id->base.qp_type = listener->base.qp_type;
    id->base.context = listener->base.context;
    id->base.channel = listener->base.channel;
    addr = &id->base.route.addr;
    getsockname(fd, &addr->src_addr, &size);
    getpeername(fd, &addr->dst_addr, &other);
    id->next = cm_ids;
    cm_ids = id;
}

/* --- hearing ---------------------------------------------------------------------------------- */

static void heard(struct cm_id *id)
{
    const struct cm_message *said = &id->coming;
    if (said->magic != MAGIC || said->is_datagram != (id->base.ps == RDMA_PS_UDP)) {
        cm_hang_up(id);
        return;
    }
    if (said->word != CM_RTU)
        id->theirs = *said;
    bool is_datagram = id->base.ps == RDMA_PS_UDP;
    if (said->word == CM_REQ && id->state == CM_IDLE && cm_settle(id)) {
        id->state = CM_ANSWERS;
        id->is_told = true;
        cm_tell(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    } else if (said->word == CM_REJ && id->state == CM_ASKED) {
        cm_hang_up(id);
        id->state = CM_BOUND;
        cm_tell(id, RDMA_CM_EVENT_REJECTED, REJECTED_BY_PROGRAM);
    } else if (said->word == CM_REP && id->state == CM_ASKED) {
        id->state = CM_REPLIED;
        if (!id->base.qp && !is_datagram) {
            cm_tell(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
        } else if (!is_datagram && cm_ready_to_send(id)) {
            give_up(id, RDMA_CM_EVENT_CONNECT_ERROR, -errno);
        } else {
            id->state = CM_CONNECTED;
            cm_send_word(id, CM_RTU);
            cm_tell(id, RDMA_CM_EVENT_ESTABLISHED, 0);
        }
    } else if (said->word == CM_RTU && id->state == CM_ACCEPTED) {
        id->state = CM_CONNECTED;
        if (!is_datagram)
            cm_tell(id, RDMA_CM_EVENT_ESTABLISHED, 0);
    }
}

/* The peer has hung up, or is no more. One that was asked and never answered may have listened for
 * somebody else, and soon do so for this one. */
static void ended(struct cm_id *id)
{
    enum cm_state was = id->state;
    if (was == CM_ASKED) {
        try_again(id);
        return;
    }
    cm_hang_up(id);
    id->state = CM_OVER;
    if (was == CM_REPLIED)
        cm_tell(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    else if ((was == CM_CONNECTED || was == CM_ACCEPTED) && id->base.ps != RDMA_PS_UDP)
        cm_tell(id, RDMA_CM_EVENT_DISCONNECTED, 0);
}

static void hear(struct cm_id *id)
{
    uint8_t *to = (uint8_t *)&id->coming;
    ssize_t n = recv(id->fd, to + id->come, sizeof id->coming - id->come, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        ended(id);
        return;
    }
    id->come += (size_t)n;
    if (id->come < sizeof id->coming)
        return;
    id->come = 0;
    heard(id);
}

static void look_after(struct cm_id *id, short events)
{
    if (id->state == CM_LISTENS)
        take_one(id);
    else if (id->state == CM_CONNECTS)
        connected(id);
    else if (events)
        hear(id);
}

/* --- the thread ------------------------------------------------------------------------------- */

static struct pollfd *files;
static struct cm_id **owners;
static unsigned room;

/* Of those that came, programs know nothing before they are whole. */
static void forget_strangers(void)
{
    for (struct cm_id **at = &cm_ids, *id; (id = *at);) {
        if (id->listener && !id->is_told && id->fd < 0) {
            *at = id->next;
            free(id);
        } else {
            at = &id->next;
        }
    }
}

static unsigned gather_files(int *wait_ms)
{
    unsigned count = 1;
    *wait_ms = -1;
    forget_strangers();
    for (struct cm_id *id = cm_ids; id; id = id->next) {
        if (id->state == CM_CONNECTS && id->again_at && id->again_at <= now_ms())
            connect_again(id);
        if (id->again_at)
            *wait_ms = AGAIN_MS;
        if (id->fd < 0 || id->state == CM_BOUND)
            continue;
        if (count == room) {
            unsigned more = room * 2;
            files = realloc(files, more * sizeof *files);
            owners = realloc(owners, more * sizeof(struct cm_id *));
            if (!files || !owners)
                abort();
            room = more;
        }
        short wanted = id->state == CM_CONNECTS ? POLLOUT : POLLIN;
        files[count] = (struct pollfd){.fd = id->fd, .events = wanted};
        owners[count++] = id;
    }
    files[0] = (struct pollfd){.fd = wake, .events = POLLIN};
    return count;
}

static void *run(void *unused)
{
    uint64_t times;
    pthread_mutex_lock(&cm_lock);
    for (;;) {
        int wait_ms;
        unsigned count = gather_files(&wait_ms), destroyed = cm_destroyed;
        pthread_mutex_unlock(&cm_lock);
        poll(files, count, wait_ms);
        if (files[0].revents && read(wake, &times, sizeof times) < 0)
            files[0].revents = 0;
        pthread_mutex_lock(&cm_lock);
        for (unsigned i = 1; i < count && destroyed == cm_destroyed; i++)
            if (files[i].revents)
                look_after(owners[i], files[i].revents);
    }
    return unused;
}

static bool start(void)
{
    pthread_t thread;
    sigset_t all, before;
    room = 64;
    files = calloc(room, sizeof *files);
    owners = calloc(room, sizeof(struct cm_id *));
    wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (!files || !owners || wake < 0)
        return false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = !pthread_create(&thread, NULL, run, NULL) && !pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

bool cm_watch(void)
{
    const uint64_t one = 1;
    if (wake < 0 && !start())
        return false;
    return write(wake, &one, sizeof one) > 0 || errno == EAGAIN;
}
