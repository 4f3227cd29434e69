// A list in random order: each address is the value of the load before. No distance helps.
#include "common.h"
enum { N = 1 << 21 };
struct node { struct node *next; uint64_t value, rest[6]; };

__attribute__((noipa)) uint64_t kernel(const struct node *one, long n) {
    uint64_t sum = 0;
    for (long i = 0; i < n; i++) {
        AHEAD(INNER_DIST, one->next);
        sum += one->value;
        one = one->next;
    }
    return sum;
}

int main(void) {
    struct node *nodes = array((size_t)N * sizeof *nodes);
    uint32_t *order = array(N * sizeof *order);
    for (long i = 0; i < N; i++) order[i] = i;
    for (long i = N - 1; i > 0; i--) {
        long other = draw() % (i + 1);
        uint32_t kept = order[i];
        order[i] = order[other], order[other] = kept;
    }
    for (long i = 0; i < N; i++) nodes[order[i]].next = &nodes[order[(i + 1) % N]], nodes[order[i]].value = i;
    uint64_t sum = 0;
    REPEAT(4, sum += kernel(nodes, N));
    report(sum);
}
