// Breadth-first search of a random graph in compressed rows of 4 to 12 edges: what was visited is at an indirect address.
#include "../common.h"
enum { NODES = 1 << 22, MOST = 12 };

__attribute__((noipa)) uint32_t kernel(const uint32_t *row, const uint32_t *edge, uint32_t *depth, uint32_t *queue) {
    uint32_t end = 1;
    for (uint32_t begin = 0; begin < end; begin++) {
        uint32_t from = queue[begin];
        if (OUTER_DIST && begin + OUTER_DIST < end) {
            uint32_t later = queue[begin + OUTER_DIST];
            for (int k = 0; k < 8; k++) AHEAD(OUTER_DIST, &depth[edge[row[later] + k]]);
        }
        for (uint32_t e = row[from]; e < row[from + 1]; e++) {
            AHEAD(INNER_DIST, &depth[edge[e + INNER_DIST]]);
            uint32_t to = edge[e];
            if (!depth[to]) depth[to] = depth[from] + 1, queue[end++] = to;
        }
    }
    return end;
}

int main(void) {
    uint32_t *row = array((NODES + 1) * sizeof *row), *edge = array(((size_t)NODES * MOST + 65536) * sizeof *edge);
    uint32_t *depth = array(NODES * sizeof *depth), *queue = array(NODES * sizeof *queue), j = 0, reached = 0;
    for (long n = 0; n < NODES; n++) {
        row[n] = j;
        for (int k = 4 + draw() % 9; k; k--) edge[j++] = draw() % NODES;
    }
    row[NODES] = j;
    REPEAT(3, (memset(depth, 0, NODES * sizeof *depth), depth[7] = 1, queue[0] = 7, reached = kernel(row, edge, depth, queue)));
    report(reached);
}
