/* Indirect branches whose mispredictions are known by construction: indirect KIND [normal|control] [TIMES]
   Each goes where a table of a million numbers says; a control goes the same ways, each as often, in sorted order, which every
   processor predicts. Deterministic; prints the seconds of processor time. Labels: estimate_labels.csv, set "indirect". */
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

typedef uint64_t u64;
static const u64 SIZE = 1 << 20;
static unsigned char order[SIZE];
static u64 state = 88172645463325252u;
static u64 rnd() { state ^= state << 13; state ^= state >> 7; state ^= state << 17; return state >> 20; }

struct Shape { virtual u64 leaf(u64) = 0; virtual u64 longer(u64) = 0; virtual u64 loop(u64) = 0; virtual u64 sized(u64) = 0; };
/* A leaf of three instructions, 30 of which some wait for others, a loop of eight trips, and leaves of different sizes. */
template <int N> struct Of : Shape {
    __attribute__((noinline)) u64 leaf(u64 x) override { return (x + N) ^ 5; }
    __attribute__((noinline)) u64 longer(u64 x) override {
        u64 a = x + N, b = x ^ 3, c = x >> 7;
        a = (a << 3) - b + (c ^ 11); b = (b >> 2) + a * 5 + N; c = (c + 9) ^ (a >> 4); a = a + (b ^ c) + (c << 1);
        b = (b - c) ^ (a << 2); c = c + a + b; return a + b + c + N;
    }
    __attribute__((noinline)) u64 loop(u64 x) override {
        for (int i = 0; i < 8; i++) { x += N; __asm__ volatile("" : "+r"(x)); }
        return x;
    }
    __attribute__((noinline)) u64 sized(u64 x) override { __asm__ volatile(".fill %c0, 4, 0x00401f0f" :: "i"(N)); return x + N; }
};
/* Calls on by a jump: what is jumped to is another function. */
__attribute__((noinline)) static u64 forwarded(Shape *shape, u64 x) { return shape->leaf(x + 1); }
static Of<1> a1; static Of<2> a2; static Of<3> a3; static Of<4> a4; static Of<5> a5; static Of<6> a6; static Of<7> a7; static Of<8> a8;
static Shape *shapes[] = {&a1, &a2, &a3, &a4, &a5, &a6, &a7, &a8};
#define OF(name, what) __attribute__((noinline)) static u64 name(u64 x) { return what; }
OF(f0, x + 3) OF(f1, x ^ 5) OF(f2, x - 7) OF(f3, x * 3)
static u64 (*volatile functions[])(u64) = {f0, f1, f2, f3};

#define KERNEL(name, what) __attribute__((noipa)) u64 name(u64 rounds) { \
    u64 s = 1; for (u64 r = 0; r < rounds; r++) for (u64 i = 0; i < SIZE; i++) { what; } return s; }
KERNEL(k_leaf, s = shapes[order[i]]->leaf(s))
KERNEL(k_longer, s = shapes[order[i]]->longer(s))
KERNEL(k_loop, s = shapes[order[i]]->loop(s))
KERNEL(k_sized, s = shapes[order[i]]->sized(s))
KERNEL(k_table, s = functions[order[i]](s))
KERNEL(k_tail, s = forwarded(shapes[order[i]], s))
/* Each operation jumps to the next one's code, as interpreters do. */
__attribute__((noipa)) u64 k_threaded(u64 rounds) {
    static const void *const code[] = {&&c0, &&c1, &&c2, &&c3, &&c4, &&c5, &&c6, &&c7};
    u64 s = 1, i = 0, n = rounds * SIZE;
#define NEXT if (i == n) return s; goto *code[order[i++ & (SIZE - 1)]]
    NEXT;
c0: s += i; NEXT;
c1: s ^= i; NEXT;
c2: s -= 3; NEXT;
c3: s = s * 5; NEXT;
c4: s = s >> 1 | i; NEXT;
c5: s += s; NEXT;
c6: s = ~s; NEXT;
c7: s ^= s >> 3; NEXT;
}
KERNEL(k_switch, switch (order[i]) {
    case 0: s += i; break; case 1: s ^= i; break; case 2: s -= 3; break; case 3: s = s * 5; break;
    case 4: s = s >> 1 | i; break; case 5: s += s; break; case 6: s = ~s; break; default: s ^= s >> 3; break; })

typedef u64 (*Kernel)(u64);
/* How the next way is drawn: at random of so many; in turn; by a random pattern that repeats; the first at so many percent. */
enum How { RANDOM, TURN, PATTERN, SKEW };
static const struct { const char *name; Kernel kernel; How how; unsigned of, by; } KINDS[] = {
    {"virtual2", k_leaf, RANDOM, 2, 0}, {"virtual4", k_leaf, RANDOM, 4, 0}, {"virtual8", k_leaf, RANDOM, 8, 0},
    {"virtual4_30", k_longer, RANDOM, 4, 0}, {"virtual4_loop", k_loop, RANDOM, 4, 0},
    {"turn2", k_leaf, TURN, 2, 0}, {"turn4", k_leaf, TURN, 4, 0}, {"turn8", k_leaf, TURN, 8, 0},
    {"turn_sizes4", k_sized, TURN, 4, 0}, {"pattern40", k_leaf, PATTERN, 4, 40}, {"pattern1000", k_leaf, PATTERN, 4, 1000},
    {"pattern60000", k_leaf, PATTERN, 4, 60000},
    {"jumps8", k_switch, RANDOM, 8, 0}, {"jumps_turn8", k_switch, TURN, 8, 0},
    {"tail4", k_tail, RANDOM, 4, 0}, {"threaded8", k_threaded, RANDOM, 8, 0}, {"threaded_turn8", k_threaded, TURN, 8, 0},
    {"table_skew60", k_table, SKEW, 4, 60}, {"table_skew90", k_table, SKEW, 4, 90},
};

int main(int count, char **arguments) {
    double times = count > 3 ? atof(arguments[3]) : 1;
    for (auto &kind : KINDS) {
        if (count < 2 || strcmp(kind.name, arguments[1])) continue;
        for (u64 i = 0; i < SIZE; i++)
            order[i] = kind.how == TURN ? i % kind.of
                : kind.how == PATTERN && i >= kind.by ? order[i - kind.by]
                : kind.how == SKEW ? (rnd() % 100 < kind.by ? 0 : 1 + rnd() % (kind.of - 1)) : rnd() % kind.of;
        if (count > 2 && !strcmp(arguments[2], "control")) std::sort(order, order + SIZE);
        clock_t start = clock();
        u64 sum = kind.kernel(120 * times);
        printf("%s %.4f\n", kind.name, (double)(clock() - start) / CLOCKS_PER_SEC);
        return sum == 1;
    }
    return 2;
}
