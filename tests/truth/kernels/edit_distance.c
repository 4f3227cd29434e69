/* A row of the edit distance. */
#include "driver.h"

static int row[1024];
static u8 text[1024];

KERNEL void kernel(int *row, u8 *text, u8 letter, int n) {
    int corner = row[0];
    for (int j = 1; j < n; j++) {
        int best = corner + (text[j] != letter);
        corner = row[j];
        if (row[j] + 1 < best) best = row[j] + 1;
        if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
        row[j] = best;
    }
}

static void run(void) {
    for (int i = 0; i < 1024; i++) row[i] = i, text[i] = (u8)(next() & 3);
    kernel(row, text, 1, N);
}
