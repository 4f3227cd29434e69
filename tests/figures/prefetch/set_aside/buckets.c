// Probing a hash table with linked buckets: the head is at a computed address, what follows is a chase.
#include "../common.h"
enum { N = 1 << 21, HEADS = 1 << 22, NODES = 1 << 22 };
struct node { struct node *next; uint64_t key, value, rest; };
#define HEAD(key) (((key) * 0x9e3779b97f4a7c15ull) >> 42)

__attribute__((noipa)) uint64_t kernel(struct node *const *heads, const uint64_t *keys, long n) {
    uint64_t found = 0;
    for (long i = 0; i < n; i++) {
        AHEAD(DIST, &heads[HEAD(keys[i + DIST])]);
        for (const struct node *one = heads[HEAD(keys[i])]; one; one = one->next)
            if (one->key == keys[i]) {
                found += one->value;
                break;
            }
    }
    return found;
}

int main(void) {
    struct node **heads = array((size_t)HEADS * sizeof *heads), *nodes = array((size_t)NODES * sizeof *nodes);
    uint64_t *keys = array((N + 4096) * sizeof *keys), found = 0;
    for (long i = 0; i < NODES; i++) {
        uint64_t key = draw();
        nodes[i] = (struct node){heads[HEAD(key)], key, i, 0};
        heads[HEAD(key)] = &nodes[i];
        if (i < N) keys[i] = i % 2 ? key : draw();
    }
    REPEAT(4, found += kernel(heads, keys, N));
    report(found);
}
