/* One structure through a pointer, updated again and again. */
#include "driver.h"

struct state { long a, b, c; };
static struct state s = {1, 2, 3};

KERNEL void kernel(volatile struct state *s, int n) {
    for (int i = 0; i < n; i++) {
        s->a += s->b;
        s->b ^= s->c;
        s->c = s->a + 1;
    }
}

static void run(void) {
    kernel(&s, N);
}
