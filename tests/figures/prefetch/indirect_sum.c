// Sum over a list of indices: an indirect load each iteration.
#include "common.h"
enum { N = 1 << 23, M = 1 << 26 };

__attribute__((noipa)) uint64_t kernel(const uint32_t *index, const uint32_t *data, long n) {
    uint64_t sum = 0;
    for (long i = 0; i < n; i++) {
        AHEAD(INNER_DIST, &data[index[i + INNER_DIST]]);
        sum += data[index[i]] ^ (uint64_t)i;
    }
    return sum;
}

int main(void) {
    uint32_t *index = array((N + 4096) * sizeof *index), *data = array((size_t)M * sizeof *data);
    for (long i = 0; i < N; i++) index[i] = draw() % M;
    for (long i = 0; i < M; i += 16) data[i] = i;
    uint64_t sum = 0;
    REPEAT(6, sum += kernel(index, data, N));
    report(sum);
}
