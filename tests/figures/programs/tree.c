// A tree, a sort and a switch: 400,000 numbers.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { int key; struct node *l, *r; };
static int cmp(const void *a, const void *b) { int x = *(const int*)a, y = *(const int*)b; return x < y ? -1 : x > y; }
__attribute__((noinline)) static struct node *insert(struct node *t, int k) {
  if (!t) { t = calloc(1, sizeof *t); if (!t) { fprintf(stderr,"no memory\n"); exit(1);} t->key = k; return t; }
  if (k < t->key) t->l = insert(t->l, k); else if (k > t->key) t->r = insert(t->r, k);
  return t;
}
__attribute__((noinline)) static long walk(const struct node *t, int depth) { return t ? walk(t->l, depth+1) + (long)t->key * depth + walk(t->r, depth+1) : 0; }
__attribute__((noinline)) static int kind(int c) {
  switch (c) { case 0: return 4; case 1: return 7; case 2: return 1; case 3: return 2; case 4: return 9; case 5: return 3; case 6: return 8; case 7: return 12; default: return 0; }
}
int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 20000; unsigned s = 1; struct node *t = 0; int *v = malloc(n * sizeof *v); long sum = 0;
  for (int i = 0; i < n; i++) { s = s * 1103515245 + 12345; v[i] = (s >> 8) % 100000; t = insert(t, v[i]); sum += kind(v[i] % 9); if (v[i] % 17 == 3) sum ^= i; }
  qsort(v, n, sizeof *v, cmp);
  printf("%ld %ld %d\n", walk(t, 0), sum, v[n/2]); return 0;
}
