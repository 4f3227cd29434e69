"""The hot innermost loop of a trace as a linear region, and its dependencies through memory.

A *region* is the most frequent path through one iteration of the loop; an iteration begins whenever the loop's head is
reached. A *triple* is (writer, reader, Δ): the reader's bytes were last written by that instruction of the region, Δ
iterations earlier, in the same run of the loop (a writer outside of the loop makes none), fewer than `window`
instructions earlier.
"""

import collections


class Iteration:
    """One pass through the loop: which run of the loop it belongs to, its path, its dependencies."""

    __slots__ = ("run", "path", "found")

    def __init__(self, run):
        self.run, self.path, self.found = run, [], []


class Loop:
    """Head and tail of a loop, and how often it was gone round."""

    def __init__(self, head, tail, count):
        self.head, self.tail, self.count = head, tail, count


def hottest(addresses, within):
    """The loop with the most jumps backwards; `within` says which addresses count."""
    jumps, before = collections.Counter(), None
    for address in addresses:
        if not within(address):
            continue
        if before is not None and address <= before:
            jumps[(before, address)] += 1
        before = address
    heads = collections.Counter()
    for (_, head), count in jumps.items():
        heads[head] += count
    if not heads:
        return None
    head, count = heads.most_common(1)[0]
    tail = max(source for source, target in jumps if target == head and jumps[(source, target)] * 20 >= count)
    return Loop(head, tail, count)


def iterations(steps, loop, function=None):
    """All iterations of a loop.

    With `function` (first, last address) what lies outside of it is what the loop calls, and a part of its path;
    without it, whatever lies outside of the loop ends the run.
    """
    written, every = {}, []
    current, run = None, 0
    for index, (address, touched) in enumerate(steps):
        called = function is not None and not function[0] <= address <= function[1]
        inside = loop.head <= address <= loop.tail or called
        if address == loop.head:
            if current is None:
                run += 1
            current = Iteration(run)
            every.append(current)
        elif not inside:
            current = None
        if current is not None and inside:
            current.path.append(address)
        number = len(every) - 1
        for kind, start, size in touched:
            if kind in "LM" and inside and current is not None:
                for writer in {written.get(byte) for byte in range(start, start + size)}:
                    if writer is not None and writer[0] == run:
                        current.found.append((writer[3], address, number - writer[1], index - writer[2]))
            if kind in "SM":
                mark = (run, number, index, address) if inside and current is not None else None
                for byte in range(start, start + size):
                    written[byte] = mark
    return every


class Region:
    """The most frequent path, the share of the iterations that take it, and its triples with their shares."""

    def __init__(self, every):
        paths = collections.Counter(tuple(one.path) for one in every)
        self.path = next((path for path, _ in paths.most_common() if len(set(path)) == len(path)), ())
        self.total = len(every)
        self.taken = [number for number, one in enumerate(every) if tuple(one.path) == self.path]
        self.every = every

    def share(self):
        """How many of the iterations take the path."""
        return len(self.taken) / self.total

    def triples(self, window):
        """`{(writer, reader, Δ): share of the region's iterations in which it holds}`."""
        counts, own = collections.Counter(), set(self.path)
        for number in self.taken:
            counts.update({(writer, reader, delta) for writer, reader, delta, distance in self.every[number].found
                           if distance < window and writer in own})
        return {triple: count / len(self.taken) for triple, count in counts.items()}

    def middle(self, needed):
        """Number of an iteration from which `needed` more follow in the same run and on the path, near the middle."""
        taken, ahead, best = set(self.taken), 0, []
        for number in range(self.total - 1, -1, -1):
            one = self.every[number]
            after = self.every[number + 1] if number + 1 < self.total else None
            ahead = ahead + 1 if number in taken and after is not None and after.run == one.run else 0
            if number in taken:
                best.append((-min(ahead, needed), abs(number - self.total / 2), number))
        return min(best)[2]
