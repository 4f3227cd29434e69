// Probe side of a hash join: the key's bucket, then a comparison. The hash makes the address complex, but computable ahead.
#include "common.h"
enum { N = 1 << 22, BUCKETS = 1 << 24 };
struct bucket { uint64_t key, value; };
#define HASH(key) (((key) * 0x9e3779b97f4a7c15ull) >> 40)

__attribute__((noipa)) uint64_t kernel(const struct bucket *table, const uint64_t *keys, long n) {
    uint64_t found = 0;
    for (long i = 0; i < n; i++) {
        AHEAD(INNER_DIST, &table[HASH(keys[i + INNER_DIST])]);
        const struct bucket *one = &table[HASH(keys[i])];
        found += one->key == keys[i] ? one->value : 1;
    }
    return found;
}

int main(void) {
    struct bucket *table = array((size_t)BUCKETS * sizeof *table);
    uint64_t *keys = array((N + 4096) * sizeof *keys);
    for (long i = 0; i < N; i++) {
        keys[i] = draw();
        if (i % 2) table[HASH(keys[i])] = (struct bucket){keys[i], i};
    }
    uint64_t found = 0;
    REPEAT(12, found += kernel(table, keys, N));
    report(found);
}
