// The second half of a batched B-tree look-up: the descents have left pointers to leaves, which are read in turn, each searched for its key.
#include "../common.h"
enum { N = 1 << 20, LEAVES = 1 << 21, KEYS = 15 };
struct leaf { uint32_t keys[KEYS], base; };
struct query { const struct leaf *leaf; uint32_t key; };

__attribute__((noipa)) uint64_t kernel(const struct query *queries, long n) {
    uint64_t sum = 0;
    for (long i = 0; i < n; i++) {
        AHEAD(DIST, queries[i + DIST].leaf);
        const struct leaf *leaf = queries[i].leaf;
        int k = 0;
        for (int j = 0; j < KEYS; j++) k += leaf->keys[j] < queries[i].key;
        sum += leaf->base + k;
    }
    return sum;
}

int main(void) {
    struct leaf *leaves = array((size_t)LEAVES * sizeof *leaves);
    struct query *queries = array((N + 4096) * sizeof *queries);
    for (long i = 0; i < LEAVES; i++) {
        leaves[i].base = i;
        for (int j = 0; j < KEYS; j++) leaves[i].keys[j] = j << 28;
    }
    for (long i = 0; i < N + 4096; i++) queries[i] = (struct query){&leaves[draw() % LEAVES], draw()};
    uint64_t sum = 0;
    REPEAT(12, sum += kernel(queries, N));
    report(sum);
}
