/* Who is next on the way to a peer: asked of the kernel, which has the host's routes and
 * neighbours. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "rc.h"

enum { TRIES = 40, TRY_NS = 25000000, DISCARD_PORT = 9, ADDRESS_MAX = 16 };

struct address {
    int family;
    uint32_t bytes;
    uint8_t raw[ADDRESS_MAX];
};

static struct address address_of(const union ibv_gid *gid)
{
    static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    struct address found = {AF_INET6, 16, {0}};
    if (!memcmp(gid->raw, mapped, sizeof mapped))
        found = (struct address){AF_INET, 4, {0}};
    memcpy(found.raw, gid->raw + 16 - found.bytes, found.bytes);
    return found;
}

/* Ask, and hand every answer on until one is what was looked for. */
static bool ask(void *message, uint32_t bytes, bool (*take)(const struct nlmsghdr *, void *),
                void *with)
{
    uint8_t answer[16384];
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    bool found = false, over = fd < 0 || send(fd, message, bytes, 0) < 0;
    while (!over && !found) {
        ssize_t length = recv(fd, answer, sizeof answer, 0);
        int left = (int)length;
        over = length <= 0;
        for (struct nlmsghdr *one = (void *)answer; !over && !found && NLMSG_OK(one, left);
             one = NLMSG_NEXT(one, left)) {
            over = one->nlmsg_type == NLMSG_DONE || one->nlmsg_type == NLMSG_ERROR;
            found = !over && take(one, with);
            over |= !(one->nlmsg_flags & NLM_F_MULTI);
        }
    }
    if (fd >= 0)
        close(fd);
    return found;
}

static bool take_gateway(const struct nlmsghdr *answer, void *with)
{
    struct address *next = with;
    int left = (int)RTM_PAYLOAD(answer);
    for (struct rtattr *a = RTM_RTA(NLMSG_DATA(answer)); RTA_OK(a, left); a = RTA_NEXT(a, left))
        if (a->rta_type == RTA_GATEWAY && RTA_PAYLOAD(a) == next->bytes)
            memcpy(next->raw, RTA_DATA(a), next->bytes);
    return true;
}

/* The address becomes the gateway's, if there is one. */
static bool find_gateway(struct address *next)
{
    struct {
        struct nlmsghdr header;
        struct rtmsg route;
        struct rtattr attribute;
        uint8_t address[ADDRESS_MAX];
    } message = {
        .header = {.nlmsg_len = sizeof message, .nlmsg_type = RTM_GETROUTE,
                   .nlmsg_flags = NLM_F_REQUEST},
        .route = {.rtm_family = (uint8_t)next->family, .rtm_dst_len = (uint8_t)(8 * next->bytes)},
        .attribute = {(uint16_t)RTA_LENGTH(next->bytes), RTA_DST},
    };
    memcpy(message.address, next->raw, next->bytes);
    message.header.nlmsg_len -= ADDRESS_MAX - next->bytes;
    return ask(&message, message.header.nlmsg_len, take_gateway, next);
}

struct neighbour {
    const struct address *address;
    int ifindex;
    uint8_t *mac;
};

static bool take_neighbour(const struct nlmsghdr *answer, void *with)
{
    const struct neighbour *wanted = with;
    const struct ndmsg *entry = NLMSG_DATA(answer);
    const uint8_t *mac = NULL;
    bool is_it = false;
    int left = (int)NLMSG_PAYLOAD(answer, sizeof *entry);
    const int unknown = NUD_INCOMPLETE | NUD_FAILED;
    struct rtattr *a = (void *)((uint8_t *)NLMSG_DATA(answer) + NLMSG_ALIGN(sizeof *entry));
    if (entry->ndm_ifindex != wanted->ifindex || entry->ndm_state & unknown)
        return false;
    for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
        if (a->rta_type == NDA_DST && RTA_PAYLOAD(a) == wanted->address->bytes)
            is_it = !memcmp(RTA_DATA(a), wanted->address->raw, wanted->address->bytes);
        if (a->rta_type == NDA_LLADDR && RTA_PAYLOAD(a) == 6)
            mac = RTA_DATA(a);
    }
    if (is_it && mac)
        memcpy(wanted->mac, mac, 6);
    return is_it && mac;
}

static bool find_neighbour(const struct neighbour *wanted)
{
    struct {
        struct nlmsghdr header;
        struct ndmsg about;
    } message = {
        .header = {.nlmsg_len = sizeof message, .nlmsg_type = RTM_GETNEIGH,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .about = {.ndm_family = (uint8_t)wanted->address->family},
    };
    return ask(&message, sizeof message, take_neighbour, (void *)(uintptr_t)wanted);
}

/* A datagram that nobody reads: so that the kernel asks who its neighbour is. */
static void make_known(const struct address *to)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(DISCARD_PORT)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(DISCARD_PORT)};
    int fd = socket(to->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_v4 = to->family == AF_INET;
    memcpy(is_v4 ? (void *)&v4.sin_addr : (void *)&v6.sin6_addr, to->raw, to->bytes);
    if (fd < 0)
        return;
    sendto(fd, "", 1, MSG_DONTWAIT, is_v4 ? (void *)&v4 : (void *)&v6,
           is_v4 ? sizeof v4 : sizeof v6);
    close(fd);
}

bool route_find(struct ctx *ctx, const union ibv_gid *peer, uint8_t mac[6])
{
    struct address next = address_of(peer);
    const struct timespec nap = {0, TRY_NS};
    struct neighbour wanted = {&next, ctx->ifindex, mac};
    for (int i = 0; i < ctx->gid_count; i++)
        if (!memcmp(&ctx->gids[i], peer, sizeof *peer)) {
            memcpy(mac, ctx->mac, 6); /* ourselves, whom no neighbour would name */
            return true;
        }
    if (!find_gateway(&next))
        return false;
    for (unsigned i = 0; i < TRIES; i++) {
        if (find_neighbour(&wanted))
            return true;
        make_known(&next);
        nanosleep(&nap, NULL);
    }
    return false;
}
