// A histogram of keys that are not known ahead of the data: half of them fall into few bins, the rest anywhere in a large table.
#include "../common.h"
enum { N = 1 << 22, BINS = 1 << 25, FEW = 1 << 10 };
#define BIN(key) (((key) * 0x9e3779b97f4a7c15ull) >> 39)

__attribute__((noipa)) void kernel(const uint64_t *keys, uint64_t *bins, long n) {
    for (long i = 0; i < n; i++) {
        AHEAD(INNER_DIST, &bins[BIN(keys[i + INNER_DIST])]);
        bins[BIN(keys[i])] += 1;
    }
}

int main(void) {
    uint64_t *keys = array((N + 4096) * sizeof *keys), *bins = array((size_t)BINS * sizeof *bins), few[FEW];
    for (long i = 0; i < FEW; i++) few[i] = draw();
    for (long i = 0; i < N; i++) keys[i] = draw() % 2 ? few[draw() % FEW] : draw();
    REPEAT(12, kernel(keys, bins, N));
    report(bins[BIN(keys[5])]);
}
