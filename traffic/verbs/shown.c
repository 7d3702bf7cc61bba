/* What the kernel shows of an adapter, where somebody made the folder for it (closlab exec does):
 * its addresses, and what it counts.
 *
 * Programs on a host share an adapter, so each adds to what a file says what it has counted since
 * it did so last.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "rc.h"

#define PORT "/sys/class/infiniband/closlab0/ports/1/"

enum { EVERY_NS = 100000000, PATH_BYTES = 160 };

static const struct { const char *folder, *name; } known[] = {
#define NAME(folder, name) {#folder, #name},
    VERBS_COUNTERS(NAME)
#undef NAME
};
enum { KNOWN = sizeof known / sizeof *known };
_Static_assert(sizeof(struct counts) == KNOWN * sizeof(uint64_t), "each is one number");

/* False: there is no such folder. */
static bool show(const char *place, int index, const char *text)
{
    char path[PATH_BYTES], line[96];
    snprintf(path, sizeof path, PORT "%s/%d", place, index);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return false;
    int bytes = snprintf(line, sizeof line, "%s\n", text);
    bool written = write(fd, line, (size_t)bytes) == bytes;
    close(fd);
    return written;
}

const char *gid_text(const union ibv_gid *gid, char text[GID_TEXT])
{
    char *at = text;
    for (unsigned j = 0; j < sizeof gid->raw; j += 2)
        at += snprintf(at, (size_t)(text + GID_TEXT - at), "%s%02x%02x", j ? ":" : "",
                       gid->raw[j], gid->raw[j + 1]);
    return text;
}

void shown_addresses(const struct ctx *ctx, const char *interface)
{
    for (int i = 0; i < ctx->gid_count; i++) {
        char text[GID_TEXT];
        if (!show("gids", i, gid_text(&ctx->gids[i], text)) || !show("gid_attrs/types", i, "RoCE v2") ||
            !show("gid_attrs/ndevs", i, interface))
            return;
    }
}

/* False: there is no such file. */
static bool add(const char *folder, const char *name, uint64_t more)
{
    char path[PATH_BYTES], text[24] = "";
    snprintf(path, sizeof path, PORT "%s/%s", folder, name);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return false;
    flock(fd, LOCK_EX);
    bool was_read = pread(fd, text, sizeof text - 1, 0) >= 0;
    int bytes = snprintf(text, sizeof text, "%llu\n",
                         strtoull(text, NULL, 10) + (unsigned long long)more);
    bool is_added = was_read && pwrite(fd, text, (size_t)bytes, 0) == bytes;
    close(fd);
    return is_added;
}

/* A number never becomes shorter, so whoever reads meanwhile sees the one or the other. */
static void add_all(const struct counts *now, struct counts *totals)
{
    const uint64_t *numbers = (const uint64_t *)now;
    uint64_t *before = (uint64_t *)totals;
    for (unsigned i = 0; i < KNOWN; i++) {
        if (numbers[i] != before[i] && known[i].folder[0] != 'o' &&
            !add(known[i].folder, known[i].name, numbers[i] - before[i]))
            return;
        before[i] = numbers[i];
    }
}

void shown_counts(struct ctx *ctx, ns_t now, bool is_last)
{
    if (!is_last && now < ctx->shown_at)
        return;
    pthread_mutex_lock(&ctx->lock);
    struct counts counted = ctx->counts;
    pthread_mutex_unlock(&ctx->lock);
    add_all(&counted, &ctx->shown);
    ctx->shown_at = now + EVERY_NS;
}

void shown_on_standard_error(const struct ctx *ctx)
{
    const uint64_t *numbers = (const uint64_t *)&ctx->counts;
    for (unsigned i = 0; i < KNOWN; i++)
        fprintf(stderr, "%s%s %llu", i ? " " : "closlab0: ", known[i].name,
                (unsigned long long)numbers[i]);
    fputc('\n', stderr);
}
