/* Counts of bytes. */
/* class: data-dependent */
#include "driver.h"

static u8 text[1024];
static u32 count[256];

KERNEL void kernel(u32 *count, u8 *text, int n) {
    for (int i = 0; i < n; i++) count[text[i]]++;
}

static void run(void) {
    for (int i = 0; i < 1024; i++) text[i] = (u8)(next() & 15);
    kernel(count, text, N);
}
