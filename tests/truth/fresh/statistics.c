/* Count, sum and checksum in a structure behind a pointer that may alias the data. */
#include "../kernels/driver.h"

struct statistics { u64 count, sum, check; };
static struct statistics s;
static u64 x[1024];

KERNEL void kernel(struct statistics *s, u64 *x, int n) {
    for (int i = 0; i < n; i++) {
        s->count += 2;
        s->sum += x[i];
        s->check = s->check * 3 ^ x[i];
    }
}

static void run(void) {
    for (int i = 0; i < 1024; i++) x[i] = next();
    kernel(&s, x, N);
}
