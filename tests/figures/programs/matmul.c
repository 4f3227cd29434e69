/* Matrix product C = A * B, textbook order or interchanged: the program of docs/guide/tutorial.md.
   gcc -O2 -g -fno-tree-vectorize -o matmul tests/figures/programs/matmul.c
   ./matmul naive|interchanged [N [ROUNDS]] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double *a, *b, *c;

__attribute__((noinline)) static void naive(long n) {
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) {
            double sum = 0;
            for (long k = 0; k < n; k++)
                sum += a[i * n + k] * b[k * n + j];
            c[i * n + j] = sum;
        }
}

__attribute__((noinline)) static void interchanged(long n) {
    for (long i = 0; i < n; i++)
        for (long k = 0; k < n; k++) {
            double x = a[i * n + k];
            for (long j = 0; j < n; j++)
                c[i * n + j] += x * b[k * n + j];
        }
}

int main(int argc, char **argv) {
    long n = argc > 2 ? atol(argv[2]) : 1024, rounds = argc > 3 ? atol(argv[3]) : 1;
    a = malloc(n * n * sizeof *a), b = malloc(n * n * sizeof *b), c = calloc(n * n, sizeof *c);
    if (!a || !b || !c || argc < 2) return 2;
    for (long i = 0; i < n * n; i++) a[i] = i % 7, b[i] = i % 5;
    while (rounds-- > 0) (strcmp(argv[1], "naive") ? interchanged : naive)(n);
    double sum = 0;
    for (long i = 0; i < n * n; i++) sum += c[i];
    printf("%s %ld: %.0f\n", argv[1], n, sum);
    return 0;
}
