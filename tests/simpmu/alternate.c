/* A program with phases: alternate RATES FIRST SECOND PERIOD DUTY JITTER SECONDS SEED writes the file FIRST to the
 * simulated PMU's RATES at the start of every other phase, SECOND at that of the others, which take the share DUTY of
 * PERIOD milliseconds; each phase is longer or shorter by up to the share JITTER. Prints the share of its processor
 * time that it spent in the second kind. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static char text[2][65536];
static size_t size[2];

static double used(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

static void load(int kind, const char *path) {
    FILE *in = fopen(path, "r");
    if (!in) exit(2);
    size[kind] = fread(text[kind], 1, sizeof text[kind], in);
    fclose(in);
}

int main(int argc, char **argv) {
    int rates = argc == 9 ? open(argv[1], O_WRONLY) : -1;
    if (rates < 0) return 1;
    load(0, argv[2]);
    load(1, argv[3]);
    double period = atof(argv[4]) * 1e-3, duty = atof(argv[5]), jitter = atof(argv[6]), seconds = atof(argv[7]);
    srand48(atol(argv[8]));
    /* Until now at the rates of the first kind, as the guest begins. */
    double in[2] = {used(), 0}, since = in[0], end = seconds, begun = drand48();
    for (int kind = 0;; kind = !kind) {
        /* Events are brought up to date when their task sleeps: what was counted so far is of the last phase. */
        struct timespec moment = {0, 1};
        nanosleep(&moment, NULL);
        double now = used();
        in[!kind] += now - since;
        since = now;
        if (write(rates, text[kind], size[kind]) != (ssize_t)size[kind]) return 3;
        double until = now + begun * period * (kind ? duty : 1 - duty) * (1 + jitter * (2 * drand48() - 1));
        begun = 1;
        while (used() < until && used() < end);
        if (used() >= end) {
            in[kind] += used() - since;
            break;
        }
    }
    fprintf(stderr, "share %.9f\n", in[1] / (in[0] + in[1]));
}
