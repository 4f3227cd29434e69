/* Strikes out multiples. */
#include "driver.h"

static u8 composite[4096];

KERNEL void kernel(u8 *composite, int step, int n) {
    for (int i = step; i < n; i += step) composite[i] = 1;
}

static void run(void) {
    kernel(composite, 5, 4096);
    kernel(composite, 7, 4096);
}
