/* Writes a number in decimal, last digit first, over and over. */
#include "driver.h"

static char text[1024];

KERNEL void kernel(char *text, u64 x, int n) {
    for (int i = 0; i < n; i++) {
        text[i] = (char)('0' + x % 10);
        x = x / 10 + 1234567;
    }
}

static void run(void) {
    kernel(text, 9876543210ul, N);
}
