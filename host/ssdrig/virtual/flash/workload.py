"""Workloads inside the simulator, without NBD: offline ageing and a closed loop at a queue depth in model time.

Random numbers are SplitMix64 (Steele, Lea, Flood 2014), so that a seed gives the same sequence everywhere.
Kernels take the drive's arrays, a tuple in the order of nand.Pointers, and `rng`, uint64[1], the generator's state.
"""

import numpy as np

from ssdrig.base.kernels import jit
from ssdrig.virtual.flash.commands import READ, WRITE, background, command, host_page, look_ahead, unmap
from ssdrig.virtual.flash.nand import N_WRITE_PAGES, S_BROKEN, bind


@jit
def draw(rng, n):
    """Uniform integer in [0, n)."""
    rng[0] += np.uint64(0x9E3779B97F4A7C15)
    z = rng[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.int64(((z >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@jit
def write_pages(arrays, rng, first, span, n, random):
    """Write n pages in [first, first + span): uniformly random, or one after the other. No time passes."""
    d = bind(arrays)
    m = d.m
    page = np.empty(4096, np.int64)
    for begin in range(0, n, page.size):
        page = page[: n - begin]
        for i in range(page.size):
            page[i] = first + (draw(rng, span) if random else (begin + i) % span)
        for i in range(page.size):
            look_ahead(d, page, i)
            m[N_WRITE_PAGES] += 1
            host_page(d, page[i], np.int64(0))
            if m[S_BROKEN]:
                return


@jit
def write_trim_mix(arrays, rng, pages, n, trim_permille):
    """n requests: trim_permille of 1000 unmap a random mapped page, the others write a uniformly random one
    (the workload of Frankie et al. 2012)."""
    d = bind(arrays)
    m = d.m
    for _ in range(n):
        if draw(rng, 1000) < trim_permille:
            lpn = draw(rng, pages)
            while d.l2p[lpn] == np.uint32(0xFFFFFFFF):
                lpn = draw(rng, pages)
            unmap(d, lpn, 1)
        else:
            m[N_WRITE_PAGES] += 1
            host_page(d, draw(rng, pages), np.int64(0))
            if m[S_BROKEN]:
                return


@jit
def closed_loop(
    arrays, rng, slots, read_permille, even, npages, random, first, span, t_end, window_ns, counts, samples
):
    """One command per slot is always outstanding; a completed one is replaced immediately, until t_end.

    even: reads and writes alternate in their exact shares, otherwise each command is drawn. slots: int64[QD] completion
    times, in: when the loop starts; counts: int64[windows] commands completed per window;
    samples: int64[S] latencies ns of the first S commands that completed. Returns the number of commands issued.
    """
    d = bind(arrays)
    m = d.m
    t0 = slots[0]
    issued = 0
    last = t0 - 10_000_000
    where = 0
    blocks = span // npages
    while True:
        i = 0
        for j in range(1, slots.size):
            if slots[j] < slots[i]:
                i = j
        t = slots[i]
        if t >= t_end or m[S_BROKEN]:
            return issued
        if t - last >= 5_000_000:
            background(d, t)
            last = t
        if random:
            lpn = first + draw(rng, blocks) * npages
        else:
            lpn = first + where * npages
            where = (where + 1) % blocks
        if even:
            reads = (issued + 1) * read_permille // 1000 > issued * read_permille // 1000
        else:
            reads = read_permille and draw(rng, 1000) < read_permille
        op = READ if reads else WRITE
        done = command(d, op, lpn, npages, 0, t)
        slots[i] = done
        if issued < samples.size:
            samples[issued] = done - t
        issued += 1
        w = (done - t0) // window_ns
        if w < counts.size:
            counts[w] += 1
