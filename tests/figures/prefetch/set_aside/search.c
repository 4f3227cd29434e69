// Binary search without branches in a large array: each address depends on the comparison before. Within a search nothing is known ahead.
#include "../common.h"
enum { N = 1 << 26, QUERIES = 1 << 18 };

__attribute__((noipa)) uint64_t kernel(const uint32_t *sorted, const uint32_t *queries, long n) {
    uint64_t sum = 0;
    for (long i = 0; i < n; i++) {
        const uint32_t *low = sorted;
        for (long half = N / 2; half; half /= 2) {
            AHEAD(DIST, low + half + half / 2);
            low += low[half - 1] < queries[i] ? half : 0;
        }
        sum += low - sorted;
    }
    return sum;
}

int main(void) {
    uint32_t *sorted = array((size_t)N * sizeof *sorted), *queries = array(QUERIES * sizeof *queries);
    for (long i = 0; i < N; i++) sorted[i] = i * 63;
    for (long i = 0; i < QUERIES; i++) queries[i] = draw();
    uint64_t sum = 0;
    REPEAT(4, sum += kernel(sorted, queries, QUERIES));
    report(sum);
}
