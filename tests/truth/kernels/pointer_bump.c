/* Writes through a pointer that is itself kept in memory. */
#include "driver.h"

static u32 buffer[1024];
static u32 *cursor;

KERNEL void kernel(u32 *volatile *cursor, int n) {
    for (int i = 0; i < n; i++) *(*cursor)++ = (u32)i;
}

static void run(void) {
    cursor = buffer;
    kernel((u32 *volatile *)&cursor, N);
}
