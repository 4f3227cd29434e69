/* A complex number multiplied by another, again and again, in memory. */
#include "driver.h"

struct complex { double re, im; };
static struct complex z = {1, 0};

KERNEL void kernel(volatile struct complex *z, double c, double s, int n) {
    for (int i = 0; i < n; i++) {
        double re = z->re * c - z->im * s;
        z->im = z->re * s + z->im * c;
        z->re = re;
    }
}

static void run(void) {
    kernel(&z, 0.8, 0.6, N);
}
