/* Asking for queueing disciplines, by netlink. */
#define _GNU_SOURCE
#include "kernel_qdisc.h"

#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

int qdisc_open(void) { return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE); }

/* Add what one message tells, if it is of this interface. */
static void add(struct qdisc *found, const struct nlmsghdr *head, unsigned ifindex)
{
    const struct tcmsg *tc = NLMSG_DATA(head);
    if (head->nlmsg_type != RTM_NEWQDISC || (unsigned)tc->tcm_ifindex != ifindex)
        return;
    bool is_there = true;
    const struct rtattr *attr = TCA_RTA(tc);
    for (int left = (int)TCA_PAYLOAD(head); RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
        struct tc_stats stats;
        if (attr->rta_type == TCA_KIND)
            is_there = strcmp(RTA_DATA(attr), "noqueue") != 0;
        if (attr->rta_type == TCA_STATS && RTA_PAYLOAD(attr) >= sizeof stats) {
            memcpy(&stats, RTA_DATA(attr), sizeof stats);
            found->waiting += stats.qlen;
        }
    }
    found->is_there |= is_there;
}

struct qdisc qdisc_ask(int fd, unsigned ifindex)
{
    static const struct qdisc unknown = {.is_there = true};
    struct {
        struct nlmsghdr head;
        struct tcmsg tc;
    } ask = {
        .head = {.nlmsg_len = sizeof ask, .nlmsg_type = RTM_GETQDISC,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .tc = {.tcm_family = AF_UNSPEC, .tcm_ifindex = (int)ifindex},
    };
    if (send(fd, &ask, sizeof ask, 0) < 0)
        return unknown;
    struct qdisc found = {0};
    for (;;) {
        _Alignas(struct nlmsghdr) uint8_t answer[32768];
        ssize_t got = recv(fd, answer, sizeof answer, 0);
        if (got <= 0)
            return unknown;
        const struct nlmsghdr *head = (const void *)answer;
        for (int left = (int)got; NLMSG_OK(head, left); head = NLMSG_NEXT(head, left)) {
            if (head->nlmsg_type == NLMSG_DONE)
                return found;
            if (head->nlmsg_type == NLMSG_ERROR)
                return unknown;
            add(&found, head, ifindex);
        }
    }
}
