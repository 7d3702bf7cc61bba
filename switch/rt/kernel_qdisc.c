/* Asking for queueing disciplines, by netlink. */
#define _GNU_SOURCE
#include "kernel_qdisc.h"

#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

int qdisc_open(void) { return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE); }

/* What is told of each. */
typedef void tell_fn(void *context, unsigned ifindex, bool is_there, uint32_t waiting);

static void tell_one(const struct nlmsghdr *head, tell_fn *tell, void *context)
{
    const struct tcmsg *tc = NLMSG_DATA(head);
    if (head->nlmsg_type != RTM_NEWQDISC)
        return;
    bool is_there = true;
    uint32_t waiting = 0;
    const struct rtattr *attr = TCA_RTA(tc);
    for (int left = (int)TCA_PAYLOAD(head); RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
        struct tc_stats stats;
        if (attr->rta_type == TCA_KIND)
            is_there = strcmp(RTA_DATA(attr), "noqueue") != 0;
        if (attr->rta_type == TCA_STATS && RTA_PAYLOAD(attr) >= sizeof stats) {
            memcpy(&stats, RTA_DATA(attr), sizeof stats);
            waiting += stats.qlen;
        }
    }
    tell(context, (unsigned)tc->tcm_ifindex, is_there, waiting);
}

/* Tell of all of the namespace; false if the kernel does not. */
static bool dump(int fd, tell_fn *tell, void *context)
{
    struct {
        struct nlmsghdr head;
        struct tcmsg tc;
    } ask = {
        .head = {.nlmsg_len = sizeof ask, .nlmsg_type = RTM_GETQDISC,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .tc = {.tcm_family = AF_UNSPEC},
    };
    if (send(fd, &ask, sizeof ask, 0) < 0)
        return false;
    for (;;) {
        _Alignas(struct nlmsghdr) uint8_t answer[32768];
        ssize_t got = recv(fd, answer, sizeof answer, 0);
        if (got <= 0)
            return false;
        const struct nlmsghdr *head = (const void *)answer;
        for (int left = (int)got; NLMSG_OK(head, left); head = NLMSG_NEXT(head, left)) {
            if (head->nlmsg_type == NLMSG_DONE)
                return true;
            if (head->nlmsg_type == NLMSG_ERROR)
                return false;
            tell_one(head, tell, context);
        }
    }
}

struct asked {
    unsigned ifindex;
    struct qdisc found;
};

static void add(void *context, unsigned ifindex, bool is_there, uint32_t waiting)
{
    struct asked *asked = context;
    if (ifindex != asked->ifindex)
        return;
    asked->found.is_there |= is_there;
    asked->found.waiting += waiting;
}

struct qdisc qdisc_ask(int fd, unsigned ifindex)
{
    struct asked asked = {.ifindex = ifindex};
    return dump(fd, add, &asked) ? asked.found : (struct qdisc){.is_there = true};
}

struct all {
    void (*tell)(void *context, unsigned ifindex);
    void *context;
};

static void pass_on(void *context, unsigned ifindex, bool is_there, uint32_t waiting)
{
    const struct all *all = context;
    (void)waiting;
    if (is_there)
        all->tell(all->context, ifindex);
}

bool qdisc_each(int fd, void (*tell)(void *context, unsigned ifindex), void *context)
{
    struct all all = {tell, context};
    return dump(fd, pass_on, &all);
}
