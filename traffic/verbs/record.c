/* What a program did, for who asks: a file of lines for each time the device is opened, in the
 * folder that CLOSLAB_VERBS_RECORD names (lab/runs/recording.py reads them).
 *
 *   adapter GID...                           its addresses
 *   pair NS QPN GID QPN                      a queue pair, and the peer that it is connected to
 *   done NS QPN NS KIND BYTES SIGNALLED GID  a request: when it was posted, how it is numbered
 *                                            among verbs' opcodes, to whom
 *   came NS QPN                              a message is whole, of a reliable connection
 *
 * Times are the machine's. A line is written at once, so that a program that is killed leaves
 * what it did.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rc.h"

void record_open(struct ctx *ctx)
{
    const char *folder = getenv("CLOSLAB_VERBS_RECORD");
    char path[4096];
    if (!folder)
        return;
    snprintf(path, sizeof path, "%s/%d-%u", folder, getpid(), ctx->slot);
    ctx->record = fopen(path, "ae");
    if (!ctx->record)
        return;
    setvbuf(ctx->record, NULL, _IOLBF, BUFSIZ);
    fputs("adapter", ctx->record);
    for (int i = 0; i < ctx->gid_count; i++) {
        char text[GID_TEXT];
        fprintf(ctx->record, " %s", gid_text(&ctx->gids[i], text));
    }
    fputc('\n', ctx->record);
}

void record_close(struct ctx *ctx)
{
    if (ctx->record)
        fclose(ctx->record);
}

void record_pair(const struct ctx *ctx, const struct qp *qp)
{
    char text[GID_TEXT];
    if (ctx->record)
        fprintf(ctx->record, "pair %llu %u %s %u\n", (unsigned long long)port_now(),
                qp->ex.qp_base.qp_num, gid_text(&qp->attr.ah_attr.grh.dgid, text),
                qp->attr.dest_qp_num);
}

void record_done(const struct qp *qp, const struct work *work)
{
    const struct ctx *ctx = qp_ctx(qp);
    const struct ah *ah = (const struct ah *)work->ah;
    const struct ibv_ah_attr *to = ah ? &ah->attr : &qp->attr.ah_attr;
    char text[GID_TEXT];
    if (ctx->record)
        fprintf(ctx->record, "done %llu %u %llu %d %u %d %s\n", (unsigned long long)port_now(),
                qp->ex.qp_base.qp_num, (unsigned long long)work->posted_at, work->opcode,
                work->length, qp->init.sq_sig_all || work->flags & IBV_SEND_SIGNALED,
                gid_text(&to->grh.dgid, text));
}

void record_came(const struct ctx *ctx, const struct qp *qp, ns_t now)
{
    if (ctx->record)
        fprintf(ctx->record, "came %llu %u\n", (unsigned long long)now, qp->ex.qp_base.qp_num);
}
