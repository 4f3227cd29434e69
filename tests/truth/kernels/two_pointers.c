/* Two pointers into one array, four elements apart. */
#include "driver.h"

static u32 a[1024];

KERNEL void kernel(u32 *to, u32 *from, int n) {
    while (n--) *to++ = *from++ + 1;
}

static void run(void) {
    kernel(a + 4, a, N);
}
