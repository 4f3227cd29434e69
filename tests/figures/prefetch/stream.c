// A plain sum: the hardware's prefetchers are enough.
#include "common.h"
enum { N = 1 << 25 };

__attribute__((noipa)) uint64_t kernel(const uint64_t *data, long n) {
    uint64_t sum = 0;
    for (long i = 0; i < n; i++) {
        AHEAD(INNER_DIST, &data[i + INNER_DIST]);
        sum ^= data[i] + sum / 2;
    }
    return sum;
}

int main(void) {
    uint64_t *data = array((size_t)(N + 65536) * sizeof *data);
    for (long i = 0; i < N; i++) data[i] = draw();
    uint64_t sum = 0;
    REPEAT(12, sum += kernel(data, N));
    report(sum);
}
