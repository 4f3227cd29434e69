/* Loads of a known pattern over a known size: loads chase|indirect|stream|hash BYTES LOADS
   Prints nanoseconds per load. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct node { struct node *next; uint64_t rest[7]; };

static uint64_t state = 88172645463325252u;
static uint64_t random_number(void) {
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;
    return state;
}

__attribute__((noipa)) uint64_t chase(struct node *p, uint64_t loads) {
    for (uint64_t i = 0; i < loads; i++) p = p->next;
    return (uint64_t)p;
}
__attribute__((noipa)) uint64_t indirect(uint64_t *data, uint32_t *index, uint64_t count, uint64_t loads) {
    uint64_t sum = 0;
    for (uint64_t i = 0, k = 0; i < loads; i++) { sum += data[index[k]]; if (++k == count) k = 0; }
    return sum;
}
__attribute__((noipa)) uint64_t stream(uint64_t *data, uint64_t count, uint64_t loads) {
    uint64_t sum = 0;
    for (uint64_t i = 0, k = 0; i < loads; i++) { sum += data[k]; if (++k == count) k = 0; }
    return sum;
}
__attribute__((noipa)) uint64_t hash(uint64_t *data, int bits, uint64_t loads) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < loads; i++) {
        uint64_t key = i * 0xff51afd7ed558ccdu;
        key = (key ^ key >> 33) * 0xc4ceb9fe1a85ec53u;
        sum += data[key >> (64 - bits)];
    }
    return sum;
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    uint64_t bytes = strtoull(argv[2], 0, 0), loads = strtoull(argv[3], 0, 0), lines = bytes / 64;
    struct node *nodes = aligned_alloc(4096, bytes);
    uint64_t *data = (uint64_t *)nodes;
    uint32_t *order = malloc(lines * sizeof *order);
    for (uint64_t i = 0; i < lines; i++) order[i] = i;
    for (uint64_t i = lines - 1; i > 0; i--) { /* a single cycle: Sattolo */
        uint64_t k = random_number() % i; uint32_t t = order[i]; order[i] = order[k]; order[k] = t;
    }
    for (uint64_t i = 0; i < bytes / 8; i++) data[i] = i;
    if (!strcmp(argv[1], "chase"))
        for (uint64_t i = 0; i < lines; i++) nodes[i].next = &nodes[order[i]];
    if (!strcmp(argv[1], "indirect"))
        for (uint64_t i = 0; i < lines; i++) order[i] *= 8;
    struct timespec a, b;
    uint64_t sum = 0, warm = lines < loads ? lines : loads;
    for (int round = 0; round < 2; round++) {
        uint64_t n = round ? loads : warm;
        clock_gettime(CLOCK_MONOTONIC, &a);
        switch (argv[1][0]) {
        case 'c': sum += chase(nodes, n); break;
        case 'i': sum += indirect(data, order, lines, n); break;
        case 's': sum += stream(data, bytes / 8, n); break;
        case 'h': sum += hash(data, __builtin_ctzll(bytes / 8), n); break;
        }
        clock_gettime(CLOCK_MONOTONIC, &b);
    }
    printf("%.3f\n", ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / loads);
    return sum == 42;
}
