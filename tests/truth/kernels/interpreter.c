/* A stack machine: the stack and its pointer in memory. */
#include "driver.h"

struct machine { long depth; long stack[64]; };
static struct machine m;

KERNEL void kernel(volatile struct machine *m, int n) {
    for (int i = 0; i < n; i++) {
        m->stack[m->depth++] = i;
        m->stack[m->depth++] = 3;
        m->depth--;
        m->stack[m->depth - 1] += m->stack[m->depth];
        m->depth--;
    }
}

static void run(void) {
    kernel(&m, N);
}
