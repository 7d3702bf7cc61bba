/* One port of a traffic generator as a program: flows on standard input, counts on standard output.
 *
 * Arguments:
 *
 *   INTERFACE BITS_PER_S DILATION DELAY_NS OVERHEAD CAPTURE_FILE CAPTURE_BYTES EPOCH_NS
 *
 * OVERHEAD is what a frame takes on the wire besides its bytes; CAPTURE_FILE an open file;
 * EPOCH_NS what CLOCK_MONOTONIC showed at fabric time 0. It prints "ready", and then reads lines until
 * its input ends, at which it is gone:
 *
 *   flow ID CLASS MARK HEX                           a flow, by the bytes that its frames begin with
 *   field ID BIT WIDTH list V,V,... | step START STEP COUNT | random START 0 COUNT
 *   mend ID KIND AT FROM IP MORE BAD TAIL            length, mark, ipv4, udp, plain, icrc or fcs
 *   sizes ID fixed|steps|random FIRST LAST STEP | weighted SIZE:WEIGHT ...
 *   pace ID INTERVAL BPS COUNTED GAP DELAY           of real time
 *   end ID PACKETS IN-BURSTS BURSTS PAUSE LASTS      0: without end
 *   expect ID RUN STORED                             count what comes of a flow, from nothing; STORED:
 *                                                    latency begins with a frame's last bit
 *   obey MAP ALL                                     of each class, which of ours it pauses, '-': none
 *   start RUN AT ID,ID... / stop ID,... / hold ID,... / go ID,...
 *   drop ID                                          there is no such flow any more
 *   clear                                            no flows, and nothing counted
 *   capture SNAP ROLLING                             from here on; SNAP 0: whole frames; ROLLING: when
 *                                                    its room is full, it begins anew
 *   still                                            no more of that
 *   tell                                             a line of JSON
 *
 * What it does not understand it answers with "refused ..." and ends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "tester.h"

enum { PIECE = 1 << 16, LINE_BYTES = 64 << 20 };

#define LONGEST_NAP (NS_PER_S / 10)

struct words {
    char *text;
    size_t length, room;
};

static double fabric(const struct port *port, double real) { return real / (double)port->dilation; }

static ns_t since(const struct port *port, ns_t at)
{
    return at > port->epoch ? (at - port->epoch) / port->dilation : 0;
}

static void say_counts(const struct port *port, const struct counts *counts)
{
    printf("\"frames\":%llu,\"bytes\":%llu,\"first\":%llu,\"last\":%llu,\"fps\":%.6g,\"Bps\":%.6g",
           (unsigned long long)counts->frames, (unsigned long long)counts->bytes,
           (unsigned long long)since(port, counts->first),
           (unsigned long long)since(port, counts->last),
           counts->frames_per_s * (double)port->dilation, counts->bytes_per_s * (double)port->dilation);
}

static void say_flow(const struct port *port, unsigned id, const char **comma)
{
    const struct flow *flow = port->flows[id];
    const char *state = flow->is_on && flow->is_held   ? "paused"
                        : flow->is_on || flow->on_cable ? "started"
                                                        : "stopped";
    printf("%s\"%u\":{\"state\":\"%s\",", *comma, id, state);
    say_counts(port, &port->sent_of[id]);
    printf("}");
    *comma = ",";
}

static void say_received(const struct port *port, unsigned id, const char **comma)
{
    const struct received *one = &port->received_of[id];
    printf("%s\"%u\":{", *comma, id);
    say_counts(port, &one->counts);
    printf(",\"timed\":%llu,\"least\":%.1f,\"most\":%.1f,\"sum\":%.1f}", (unsigned long long)one->timed,
           fabric(port, one->least), fabric(port, one->most), fabric(port, one->sum));
    *comma = ",";
}

static void look(struct port *port, ns_t now)
{
    port_look(&port->sent, now);
    port_look(&port->received, now);
    for (unsigned id = 0; id < port->n_flows; id++)
        port_look(&port->sent_of[id], now);
    for (unsigned id = 0; id < FLOWS_MAX; id++)
        if (port->received_of[id].is_expected)
            port_look(&port->received_of[id].counts, now);
}

static void tell(struct port *port)
{
    const char *comma = "";
    ns_t now = real_now();
    look(port, now);
    printf("{\"up\":%s,\"sent\":{", port_is_up(port) ? "true" : "false");
    say_counts(port, &port->sent);
    printf("},\"received\":{");
    say_counts(port, &port->received);
    printf("},\"pause_frames\":%llu,\"pauses\":[", (unsigned long long)port->pause_frames);
    for (unsigned class = 0; class < CLASSES; class++)
        printf("%s%llu", class ? "," : "", (unsigned long long)port->pauses[class]);
    printf("],\"paused_ns\":[");
    for (unsigned class = 0; class < CLASSES; class++) {
        double paused = port->paused[class];
        if (port->paused_until[class] > (double)now)
            paused += (double)now - port->paused_from[class];
        printf("%s%.0f", class ? "," : "", fabric(port, paused));
    }
    double frames = port->sent.frames ? (double)port->sent.frames : 1;
    printf("],\"lost_on_send\":%llu,\"late_ns\":%.1f,\"late_most_ns\":%.1f,\"flows\":{",
           (unsigned long long)port->lost_on_send, fabric(port, (double)port->late_sum / frames),
           fabric(port, (double)port->late_most));
    for (unsigned id = 0; id < port->n_flows; id++)
        if (port->flows[id])
            say_flow(port, id, &comma);
    printf("},\"expected\":{");
    comma = "";
    for (unsigned id = 0; id < FLOWS_MAX; id++)
        if (port->received_of[id].is_expected)
            say_received(port, id, &comma);
    printf("}}\n");
    fflush(stdout);
}

static void clear(struct port *port)
{
    for (unsigned id = 0; id < port->n_flows; id++) {
        flow_forget(port->flows[id]);
        port->flows[id] = NULL;
    }
    port->n_flows = 0;
    port->count = 0; /* what is on the cable ends with its flow */
    port->late_sum = port->late_most = port->lost_on_send = port->pause_frames = 0;
    memset(port->sent_of, 0, sizeof port->sent_of);
    memset(port->received_of, 0, sizeof port->received_of);
    memset(&port->sent, 0, sizeof port->sent);
    memset(&port->received, 0, sizeof port->received);
    memset(port->pauses, 0, sizeof port->pauses);
    memset(port->paused, 0, sizeof port->paused);
}

static void start(struct port *port, unsigned id, unsigned run, ns_t at)
{
    struct flow *flow = port->flows[id];
    memset(&port->sent_of[id], 0, sizeof port->sent_of[id]);
    flow->run = run;
    flow->number = 0;
    flow->due = flow->began = (double)at + flow->delay;
    flow->is_held = false;
    flow->is_on = true;
}

static bool drop(struct port *port, const char *rest)
{
    unsigned id;
    if (sscanf(rest, "%u", &id) != 1 || id >= FLOWS_MAX)
        return false;
    flow_forget(port->flows[id]);
    port->flows[id] = NULL;
    port->received_of[id].is_expected = false;
    return true;
}

/* What is told of some flows. */
static bool turn(struct port *port, const char *word, char *rest)
{
    unsigned run = 0;
    unsigned long long at = 0;
    int read = 0;
    if (!strcmp(word, "start") && sscanf(rest, "%u %llu %n", &run, &at, &read) != 2)
        return false;
    rest += read;
    for (char *one; (one = strsep(&rest, ","));) {
        unsigned long id = strtoul(one, NULL, 10);
        if (id >= FLOWS_MAX || !port->flows[id])
            return false;
        struct flow *flow = port->flows[id];
        if (!strcmp(word, "start"))
            start(port, (unsigned)id, run % RUNS, at);
        else if (!strcmp(word, "stop"))
            flow->is_on = false;
        else
            flow->is_held = !strcmp(word, "hold");
        if (!strcmp(word, "go") && flow->due < (double)real_now())
            flow->due = (double)real_now();
    }
    return true;
}

static bool expect(struct port *port, const char *rest)
{
    unsigned id, run;
    int is_stored;
    if (sscanf(rest, "%u %u %d", &id, &run, &is_stored) != 3 || id >= FLOWS_MAX)
        return false;
    port->received_of[id] = (struct received){
        .is_expected = true, .run = run % RUNS, .is_stored = is_stored};
    return true;
}

static bool learn_to_obey(struct port *port, const char *rest)
{
    char map[CLASSES + 1];
    int all;
    if (sscanf(rest, "%8s %d", map, &all) != 2 || strlen(map) != CLASSES)
        return false;
    for (unsigned class = 0; class < CLASSES; class++)
        port->class_of[class] = map[class] == '-' ? -1 : (map[class] - '0') % CLASSES;
    port->obeys_all = all;
    memset(port->paused_until, 0, sizeof port->paused_until);
    return true;
}

/* Take a line; NULL, or why it makes no sense. */
static const char *take(struct port *port, char *line, int file, uint64_t most)
{
    char *rest = line, *word = strsep(&rest, " ");
    static char nothing[1];
    rest = rest ? rest : nothing;
    if (!strcmp(word, "tell"))
        tell(port);
    else if (!strcmp(word, "clear"))
        clear(port);
    else if (!strcmp(word, "drop"))
        return drop(port, rest) ? NULL : "there is no such flow";
    else if (!strcmp(word, "expect"))
        return expect(port, rest) ? NULL : "what to expect is: ID RUN STORED";
    else if (!strcmp(word, "obey"))
        return learn_to_obey(port, rest) ? NULL : "whom to obey is: MAP ALL";
    else if (!strcmp(word, "capture") || !strcmp(word, "still")) {
        unsigned snap = 0;
        int is_rolling = 0;
        capture_end(port->capture);
        sscanf(rest, "%u %d", &snap, &is_rolling);
        port->capture = *word == 'c' ? capture_begin(file, most, snap, is_rolling) : NULL;
        return *word == 'c' && !port->capture ? "nothing can be captured" : NULL;
    } else if (!strcmp(word, "start") || !strcmp(word, "stop") || !strcmp(word, "hold") ||
               !strcmp(word, "go"))
        return turn(port, word, rest) ? NULL : "there is no such flow";
    else
        return flow_tell(port, word, rest);
    return NULL;
}

/* Read what has come, and take its whole lines. False: the input has ended, or makes no sense. */
static bool hear(struct port *port, struct words *words, int file, uint64_t most)
{
    if (words->room - words->length < PIECE) {
        size_t room = 2 * words->room + PIECE;
        char *larger = room < LINE_BYTES ? realloc(words->text, room) : NULL;
        if (!larger)
            return false;
        words->text = larger;
        words->room = room;
    }
    ssize_t n = read(STDIN_FILENO, words->text + words->length, PIECE);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0)
        return false;
    words->length += (size_t)n;
    char *line = words->text, *end;
    while ((end = memchr(line, '\n', words->length - (size_t)(line - words->text)))) {
        *end = 0;
        const char *problem = take(port, line, file, most);
        if (problem) {
            printf("refused %s: %.100s\n", problem, line);
            fflush(stdout);
            return false;
        }
        line = end + 1;
    }
    words->length -= (size_t)(line - words->text);
    memmove(words->text, line, words->length);
    return true;
}

static void run(struct port *port, int file, uint64_t most)
{
    struct words words = {0};
    struct pollfd files[] = {{.fd = port->socket, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
    ns_t looked = 0;
    for (ns_t wake = 0;;) {
        ns_t now = real_now(), left = wake <= now ? 0 : ns_least(wake - now, LONGEST_NAP);
        struct timespec limit = {(time_t)(left / NS_PER_S), (long)(left % NS_PER_S)};
        if (ppoll(files, 2, &limit, NULL) > 0 && files[1].revents && !hear(port, &words, file, most))
            return;
        bool is_busy = port_receive(port);
        now = real_now();
        wake = port_send(port, now);
        if (is_busy)
            wake = 0;
        if (now - looked > LONGEST_NAP) {
            look(port, now);
            looked = now;
        }
    }
}

int main(int count, char **words)
{
    static struct port port;
    for (unsigned class = 0; class < CLASSES; class++)
        port.class_of[class] = -1;
    if (count != 9) {
        fprintf(stderr, "the arguments are: INTERFACE BITS_PER_S DILATION DELAY_NS OVERHEAD "
                        "CAPTURE_FILE CAPTURE_BYTES EPOCH_NS\n");
        return EXIT_REFUSED;
    }
    port.bps = strtoull(words[2], NULL, 10);
    port.dilation = strtoull(words[3], NULL, 10);
    port.delay = strtoull(words[4], NULL, 10) * port.dilation;
    port.overhead = (uint32_t)strtoul(words[5], NULL, 10);
    port.epoch = strtoull(words[8], NULL, 10);
    if (!port.bps || !port.dilation || !port_open(&port, words[1]))
        return EXIT_REFUSED;
    fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
    prctl(PR_SET_TIMERSLACK, 1);
    printf("ready\n");
    fflush(stdout);
    run(&port, atoi(words[6]), strtoull(words[7], NULL, 10));
    return 0;
}
