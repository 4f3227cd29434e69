// Sparse matrix × vector, compressed rows of 6 to 10 entries: an indirect load in a short inner loop.
#include "common.h"
enum { ROWS = 1 << 19, COLUMNS = 1 << 25, MOST = 10 };

__attribute__((noipa)) void kernel(const uint32_t *row, const uint32_t *column, const float *value, const float *x, float *y, long rows) {
    for (long r = 0; r < rows; r++) {
        float sum = 0;
        for (int k = 0; OUTER_DIST && k < 8; k++) AHEAD(OUTER_DIST, &x[column[row[r + OUTER_DIST] + k]]);
        for (uint32_t j = row[r]; j < row[r + 1]; j++) {
            AHEAD(INNER_DIST, &x[column[j + INNER_DIST]]);
            sum += value[j] * x[column[j]];
        }
        y[r] = sum;
    }
}

int main(void) {
    uint32_t *row = array((ROWS + 4096) * sizeof *row), *column = array((size_t)(ROWS * MOST + 65536) * sizeof *column);
    float *value = array((size_t)(ROWS * MOST) * sizeof *value), *x = array((size_t)COLUMNS * sizeof *x), *y = array(ROWS * sizeof *y);
    uint32_t j = 0;
    for (long r = 0; r < ROWS; r++) {
        row[r] = j;
        for (int k = 6 + draw() % 5; k; k--, j++) column[j] = draw() % COLUMNS, value[j] = 1;
    }
    for (long r = ROWS; r < ROWS + 4096; r++) row[r] = j;
    for (long i = 0; i < COLUMNS; i += 1024) x[i] = 1;
    REPEAT(12, kernel(row, column, value, x, y, ROWS));
    float sum = 0;
    for (long r = 0; r < ROWS; r++) sum += y[r];
    report((uint64_t)sum);
}
