/* The last pass of a counting sort. */
/* class: data-dependent */
#include "driver.h"

static u8 key[1024], sorted[1024];
static u32 place[256];

KERNEL void kernel(u8 *sorted, u32 *place, u8 *key, int n) {
    for (int i = 0; i < n; i++) sorted[place[key[i]]++] = key[i];
}

static void run(void) {
    for (int i = 0; i < 1024; i++) key[i] = (u8)(next() & 3);
    for (int i = 0; i < 4; i++) place[i] = 250 * i;
    kernel(sorted, place, key, N);
}
