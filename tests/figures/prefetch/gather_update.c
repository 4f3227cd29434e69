// Random updates of counters, as in a histogram with many bins: a load and a store at an indirect address.
#include "common.h"
enum { N = 1 << 23, BINS = 1 << 26 };

__attribute__((noipa)) void kernel(const uint32_t *index, uint32_t *bins, long n) {
    for (long i = 0; i < n; i++) {
        AHEAD(INNER_DIST, &bins[index[i + INNER_DIST]]);
        bins[index[i]]++;
    }
}

int main(void) {
    uint32_t *index = array((N + 4096) * sizeof *index), *bins = array((size_t)BINS * sizeof *bins);
    for (long i = 0; i < N; i++) index[i] = draw() % BINS;
    REPEAT(6, kernel(index, bins, N));
    report(bins[index[5]]);
}
