/* Makes a string small, in place. */
#include "driver.h"

static char text[1024];

KERNEL void kernel(char *s) {
    for (; *s; s++)
        if (*s >= 'A' && *s <= 'Z') *s += 32;
}

static void run(void) {
    for (int i = 0; i < N; i++) text[i] = 'A' + i % 26;
    kernel(text);
}
