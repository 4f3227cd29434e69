/* Two functions in turn, each with its own rates: phases RATES FIRST SECOND ROUNDS writes the file FIRST to the
 * simulated PMU's RATES before it calls first(), SECOND before second(). */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}
__attribute__((noinline)) unsigned first(unsigned n) {
    unsigned x = n;
    for (unsigned i = 0; i < n; i++) x = x * 1664525u + 1013904223u;
    return x;
}
__attribute__((noinline)) unsigned second(unsigned n) {
    unsigned x = n;
    for (unsigned i = 0; i < n; i++) x = (x ^ i) % 977u + 7u;
    return x;
}
static void set(const char *rates, const char *from) {
    static char text[4096];
    FILE *in = fopen(from, "r"), *out = fopen(rates, "w");
    if (!in || !out) exit(2);
    fwrite(text, 1, fread(text, 1, sizeof text, in), out);
    fclose(in);
    if (fclose(out)) exit(3);
}
int main(int argc, char **argv) {
    unsigned x = argc;
    for (int round = 0; round < atoi(argv[4]); round++) {
        set(argv[1], argv[2]);
        for (double end = seconds() + 0.25; seconds() < end;) x += first(400000 + x % 2);
        set(argv[1], argv[3]);
        for (double end = seconds() + 0.25; seconds() < end;) x += second(400000 + x % 2);
    }
    printf("%u\n", x);
}
