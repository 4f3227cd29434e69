// Descent of a B-tree with 15 keys a node, six levels: the next node is a loaded pointer. Within a descent nothing can be known ahead.
#include "common.h"
enum { KEYS = 15, LEVELS = 6, QUERIES = 1 << 20, LEAVES = 1 << 20 };
struct node { uint32_t keys[KEYS], count; struct node *children[KEYS + 1]; };

__attribute__((noipa)) uint64_t kernel(const struct node *root, const uint32_t *queries, long n) {
    uint64_t sum = 0;
    for (long i = 0; i < n; i++) {
        const struct node *at = root;
        for (int level = 1; level < LEVELS; level++) {
            int k = 0;
            for (int j = 0; j < KEYS; j++) k += at->keys[j] <= queries[i];
            at = at->children[k];
            AHEAD(INNER_DIST, &at->children[8]);
        }
        sum += at->count;
    }
    return sum;
}

// A level above `below`, of `count` nodes at random places; how many nodes it has.
static struct node **above(struct node **below, long count, struct node *pool, long *used, uint32_t span) {
    long parents = (count + KEYS) / (KEYS + 1);
    struct node **made = array((parents + 1) * sizeof *made);
    for (long p = 0; p < parents; p++) {
        made[p] = &pool[(*used)++];
        for (int k = 0; k <= KEYS; k++) {
            long child = p * (KEYS + 1) + k;
            made[p]->children[k] = below[child < count ? child : count - 1];
            if (k) made[p]->keys[k - 1] = child < count ? (uint32_t)child * span : UINT32_MAX;
        }
    }
    return made;
}

int main(void) {
    struct node *leaves = array((size_t)LEAVES * sizeof *leaves), *pool = array((size_t)(LEAVES / 8) * sizeof *pool);
    struct node **level = array(LEAVES * sizeof *level);
    uint32_t *queries = array(QUERIES * sizeof *queries), span = UINT32_MAX / LEAVES;
    for (long i = 0; i < LEAVES; i++) level[i] = &leaves[i], leaves[i].count = i;
    for (long i = LEAVES - 1; i > 0; i--) {
        long other = draw() % (i + 1);
        struct node *kept = level[i];
        level[i] = level[other], level[other] = kept;
    }
    long used = 0, count = LEAVES;
    for (int k = 1; k < LEVELS; k++, span *= KEYS + 1, count = (count + KEYS) / (KEYS + 1)) level = above(level, count, pool, &used, span);
    for (long i = 0; i < QUERIES; i++) queries[i] = draw();
    uint64_t sum = 0;
    REPEAT(4, sum += kernel(level[0], queries, QUERIES));
    report(sum);
}
