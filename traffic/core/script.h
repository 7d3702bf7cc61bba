/* A host's part of a run as lines of text: what Python writes and C reads.
 *
 *   endpoint link-bps=100000000000 qps=2 transfers=3 edges=1 mtu=4096 recovery=go-back-n ...
 *   qp number=17 remote=18 priority=3 cc=dcqcn data=HEX control=HEX [rate=BPS psn=N remote-psn=N]
 *   key 5 0 HEX      with security: key 0 of secure domain 5; and from when on that is used
 *   use 5 0
 *   list 17 3 HEX    what goes by queue pair 17 and entropy 3 is carried to this IPv6 address, a list
 *                    of micro-segments
 *   send id=1 qp=17 size=1048576 [delay=NS]
 *   receive id=2 qp=17 size=1048576
 *   compute id=3 delay=1000
 *   job number=1 member=0 members=8 slots=64 rto=NS headers=HEX [floats=1]    of collectives in the network
 *   peer job=1 member=1 headers=HEX                how it is reached where there is no tree
 *   collective id=4 job=1 op=all-reduce first=1 size=1048576 [root=0 delay=NS]
 *   after 1 2        1 starts when 2 has ended
 *
 * The endpoint comes first, and says how many of the others there will be at most; queue pairs
 * before the transfers on them. Keys of `endpoint` and their meaning are those of `struct
 * ep_config`, with dashes. Unknown words and keys are errors: a line is taken whole or refused.
 *
 * And what became of it, as lines for Python to read:
 *
 *   transfer ID KIND STATE START END       times in ns, or -
 *   counter NAME VALUE
 *   paused PRIORITY NS
 */
#pragma once

#include <stdio.h>

#include "plan.h"

enum { SCRIPT_LINE_MAX = 2048, SCRIPT_PROBLEM_MAX = 320 };

struct script {
    struct plan_port port;
    struct plan *plan; /* NULL before the `endpoint` line; the caller's to free */
    char problem[SCRIPT_PROBLEM_MAX];
};

/* Take one line, which is changed on the way. False: `script->problem` says what is wrong. */
bool script_line(struct script *script, char *line);

/* A controller's word of which ways of a queue pair not to use, in place of what it said before:
 * `deny QP HEX`, where bit i of the number is entropy i. What `ep_deny` refuses is not heard. */
bool script_denial(struct script *script, const char *line, ns_t now);

/* A controller's word of keys: `key SDI AN HEX`, or `use SDI AN`; also while messages are under way. */
static inline bool script_is_key(const char *line)
{
    return !strncmp(line, "key ", 4) || !strncmp(line, "use ", 4);
}
bool script_key(struct script *script, const char *line);

void script_report(struct plan *plan, FILE *file, ns_t now);
