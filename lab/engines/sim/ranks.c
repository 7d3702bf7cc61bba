#define _GNU_SOURCE
#include "ranks.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BEGINNING 4064u        /* of a mail: with its length what MPI sends without asking first */
#define PIECE (1u << 30)       /* MPI counts with ints */
#define FIRST 1                /* tags */
#define REST 2
#define LOOKS 300u             /* before it lets others have the processor, */
#define PATIENCE 3000u         /* and before it sleeps between looks */
#define NAP 50000              /* ns */

/* An address with Open MPI, an int with MPICH: as a parameter both are one register. */
typedef uintptr_t handle;

struct mpi {
    int (*init)(int *, char ***);
    int (*initialized)(int *);
    int (*finalize)(void);
    int (*abort)(handle, int);
    int (*rank)(handle, int *);
    int (*size)(handle, int *);
    int (*send)(const void *, int, handle, int, int, handle, uint64_t *);
    int (*receive)(void *, int, handle, int, int, handle, uint64_t *);
    int (*test)(uint64_t *, int *, void *);
    handle world, byte;
};

struct opening {
    uint64_t bytes;
    uint8_t text[BEGINNING];
};

struct message { /* one at a time in either direction, the pieces of a mail after each other */
    uint64_t request;
    uint64_t at, end; /* of the mail: what is handed over, and all */
    bool is_open;
};

struct peer {
    struct opening sent, received;
    struct message out, in;
    struct mail said;
};

struct ranks {
    struct mpi mpi;
    uint32_t number, size;
    struct ranks_account account;
    struct peer peers[];
};

static bool find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

/* What Open MPI and MPICH have as constants. */
static bool find_handles(struct mpi *mpi, void *library)
{
    mpi->world = (handle)dlsym(library, "ompi_mpi_comm_world");
    mpi->byte = (handle)dlsym(library, "ompi_mpi_byte");
    if (mpi->world)
        return mpi->byte != 0;
    mpi->world = 0x44000000; /* of MPICH's ABI, which Intel's, Cray's and MVAPICH's have, too */
    mpi->byte = 0x4c00010d;
    return true;
}

static bool find_mpi(struct mpi *mpi, const char *name)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_GLOBAL); /* its own parts look for it so */
    return library && find_handles(mpi, library) && find(library, "MPI_Init", &mpi->init) &&
           find(library, "MPI_Initialized", &mpi->initialized) &&
           find(library, "MPI_Finalize", &mpi->finalize) &&
           find(library, "MPI_Abort", &mpi->abort) &&
           find(library, "MPI_Comm_rank", &mpi->rank) &&
           find(library, "MPI_Comm_size", &mpi->size) &&
           find(library, "MPI_Isend", &mpi->send) && find(library, "MPI_Irecv", &mpi->receive) &&
           find(library, "MPI_Test", &mpi->test);
}

struct ranks *ranks_join(const char *library)
{
    struct mpi mpi;
    int is_there = 0, number = 0, size = 0;
    if (!find_mpi(&mpi, library) || mpi.initialized(&is_there))
        return NULL;
    if ((!is_there && mpi.init(NULL, NULL)) || mpi.rank(mpi.world, &number) ||
        mpi.size(mpi.world, &size))
        return NULL;
    struct ranks *ranks = calloc(1, sizeof *ranks + (size_t)size * sizeof *ranks->peers);
    if (!ranks)
        return NULL;
    ranks->mpi = mpi;
    ranks->number = (uint32_t)number;
    ranks->size = (uint32_t)size;
    return ranks;
}

uint32_t ranks_number(const struct ranks *ranks) { return ranks->number; }
uint32_t ranks_size(const struct ranks *ranks) { return ranks->size; }

void ranks_account(const struct ranks *ranks, struct ranks_account *account)
{
    *account = ranks->account;
}

void ranks_leave(struct ranks *ranks) { ranks->mpi.finalize(); }
void ranks_abort(struct ranks *ranks, int code) { ranks->mpi.abort(ranks->mpi.world, code); }

static bool make_room(struct mail *mail, uint64_t bytes)
{
    if (bytes <= mail->room)
        return true;
    uint64_t room = bytes + bytes / 2 + BEGINNING;
    uint8_t *grown = realloc(mail->bytes, room);
    if (!grown)
        return false;
    mail->bytes = grown;
    mail->room = room;
    return true;
}

void *mail_more(struct mail *mail, uint64_t bytes)
{
    uint64_t at = (mail->used + 7) / 8 * 8;
    if (!make_room(mail, at + bytes))
        return NULL;
    mail->used = at + bytes;
    return mail->bytes + at;
}

static int piece_of(const struct message *message)
{
    uint64_t left = message->end - message->at;
    return (int)(left < PIECE ? left : PIECE);
}

/* Go on with what is sent to somebody; whether all of it is. */
static bool send_on(const struct mpi *mpi, uint32_t to, struct message *message, const uint8_t *mail)
{
    uint64_t status[8];
    for (int is_done;;) {
        if (message->is_open) {
            mpi->test(&message->request, &is_done, status);
            if (!is_done)
                return false;
            message->is_open = false;
        }
        if (message->at == message->end)
            return true;
        int bytes = piece_of(message);
        mpi->send(mail + message->at, bytes, mpi->byte, (int)to, REST, mpi->world, &message->request);
        message->at += (uint64_t)bytes;
        message->is_open = true;
    }
}

/* The same of what is received: until the first message is there nobody knows how long it is. */
static bool receive_on(struct ranks *ranks, uint32_t from, struct mail *mail, bool *has_failed)
{
    const struct mpi *mpi = &ranks->mpi;
    struct peer *peer = &ranks->peers[from];
    struct message *message = &peer->in;
    uint64_t status[8];
    for (int is_done;;) {
        if (message->is_open) {
            mpi->test(&message->request, &is_done, status);
            if (!is_done)
                return false;
            message->is_open = false;
            if (message->end == UINT64_MAX) {
                message->end = peer->received.bytes;
                if (!make_room(mail, message->end)) {
                    *has_failed = true;
                    return true;
                }
                message->at = message->end < BEGINNING ? message->end : BEGINNING;
                memcpy(mail->bytes, peer->received.text, message->at);
                mail->used = message->end;
            }
        }
        if (message->at == message->end)
            return true;
        int bytes = piece_of(message);
        mpi->receive(mail->bytes + message->at, bytes, mpi->byte, (int)from, REST, mpi->world,
                     &message->request);
        message->at += (uint64_t)bytes;
        message->is_open = true;
    }
}

static void begin(struct ranks *ranks, uint32_t other, const struct mail *out)
{
    const struct mpi *mpi = &ranks->mpi;
    struct peer *peer = &ranks->peers[other];
    uint64_t bytes = out->used < BEGINNING ? out->used : BEGINNING;
    mpi->receive(&peer->received, sizeof peer->received, mpi->byte, (int)other, FIRST, mpi->world,
                 &peer->in.request);
    peer->in.is_open = peer->out.is_open = true;
    peer->in.end = UINT64_MAX;
    peer->sent.bytes = peer->out.end = out->used;
    peer->out.at = bytes;
    if (bytes)
        memcpy(peer->sent.text, out->bytes, bytes);
    mpi->send(&peer->sent, (int)(sizeof peer->sent.bytes + bytes), mpi->byte, (int)other, FIRST,
              mpi->world, &peer->out.request);
    ranks->account.sent += out->used;
}

static uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Others may want this processor, and one of them may be whom we wait for. */
static void let_others(uint64_t looks)
{
    const struct timespec nap = {0, NAP};
    if (looks > PATIENCE)
        nanosleep(&nap, NULL);
    else if (looks > LOOKS)
        sched_yield();
}

bool ranks_exchange(struct ranks *ranks, const struct mail *out, struct mail *in)
{
    bool has_failed = false, is_over;
    uint64_t began = clock_ns();
    for (uint32_t other = 0; other < ranks->size; other++)
        if (other != ranks->number)
            begin(ranks, other, &out[other]);
    for (uint64_t looks = 0;; let_others(looks++)) {
        is_over = true;
        for (uint32_t other = 0; other < ranks->size; other++) {
            if (other == ranks->number)
                continue;
            struct message *message = &ranks->peers[other].out;
            is_over &= send_on(&ranks->mpi, other, message, out[other].bytes);
            is_over &= receive_on(ranks, other, &in[other], &has_failed);
        }
        if (is_over)
            break;
    }
    ranks->account.exchanges++;
    ranks->account.waited += clock_ns() - began;
    return !has_failed;
}

bool ranks_tell(struct ranks *ranks, const uint8_t *text, uint64_t bytes, uint32_t to)
{
    struct mail *out = calloc(ranks->size, sizeof *out), *in = calloc(ranks->size, sizeof *in);
    bool is_done = out && in;
    for (uint32_t other = 0; is_done && other < ranks->size; other++) {
        out[other] = (struct mail){(uint8_t *)(uintptr_t)text, other < to ? bytes : 0, 0};
        in[other] = ranks->peers[other].said;
    }
    is_done = is_done && ranks_exchange(ranks, out, in);
    for (uint32_t other = 0; in && other < ranks->size; other++)
        ranks->peers[other].said = in[other];
    free(out);
    free(in);
    return is_done;
}

const uint8_t *ranks_said(const struct ranks *ranks, uint32_t rank, uint64_t *bytes)
{
    *bytes = ranks->peers[rank].said.used;
    return ranks->peers[rank].said.bytes;
}
