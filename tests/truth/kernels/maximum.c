/* The largest of an array, and where it is, kept through pointers. */
#include "driver.h"

static int a[1024], best, where;

KERNEL void kernel(int *a, int n, int *best, int *where) {
    for (int i = 0; i < n; i++)
        if (a[i] > *best) *best = a[i], *where = i;
}

static void run(void) {
    for (int i = 0; i < 1024; i++) a[i] = (int)(next() >> 40);
    kernel(a, N, &best, &where);
}
