#!/usr/bin/env python3
"""Fast and direct pair sums of other packages beside ours: forces, one thread, uniform clouds in [-1, 1]^d.

    python3 benchmarks/peers.py build/release/benchmarks/bench_fast_sum [N ...]

Peers, each skipped with a message where it is not installed: fmm2dpy and fmm3dpy (fast multipole, forces and potential at 1e-6) and
pykeops (direct sum, compiled at run time), all from the Python package index. Seconds are medians of up to five calls, CPU time of the one
thread; both sides run one after the other in the same minutes. Build the FMMs with FAST_KER=ON, else they are several times slower.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before any of the peers is imported

import importlib
import statistics
import subprocess
import sys
import time

try:
    import numpy
except ImportError:
    print("skipped: the peers need the Python package numpy")
    sys.exit(0)

TOLERANCE = 1e-6


def seconds(call):
    """Median of five calls after one that prepares; a call of more than five seconds is its own sample."""
    samples = []
    while len(samples) < 6 and sum(samples) < 15:
        begin = time.process_time()
        call()
        samples.append(time.process_time() - begin)
    return statistics.median(samples[1:] or samples)


def cloud(count, dimension):
    return numpy.random.default_rng(5).uniform(-1.0, 1.0, (dimension, count))


def fmm2d(fmm, count):
    points = cloud(count, 2)
    charges = numpy.ones(count)
    return lambda: fmm.rfmm2d(eps=TOLERANCE, sources=points, charges=charges, pg=2)


def fmm3d(fmm, count):
    points = cloud(count, 3)
    charges = numpy.ones(count)
    return lambda: fmm.lfmm3d(eps=TOLERANCE, sources=points, charges=charges, pg=2)


def keops(package, count):
    points = numpy.ascontiguousarray(cloud(count, 3).T)
    force = package.numpy.Genred("(x - y) * Rsqrt(SqDist(x, y) + c) * Inv(SqDist(x, y) + c)",
                                 ["x = Vi(3)", "y = Vj(3)", "c = Pm(1)"], reduction_op="Sum", axis=1)
    softening = numpy.array([1e-12])  # its own pair is among the terms: 0 / c
    return lambda: force(points, points, softening, backend="CPU")


# module, what it is, dimension, s of its kernel r^-s (0: log), largest N, call
PEERS = [("fmm2dpy", "FMM2D, forces and potential", 2, 0.0, 10**6, fmm2d),
         ("fmm3dpy", "FMM3D, forces and potential", 3, 1.0, 10**6, fmm3d),
         ("pykeops", "KeOps, direct sum", 3, 1.0, 2 * 10**4, keops)]


def ours(benchmark, dimensions, most):
    """Seconds of our forces and energies at 1e-6 by (dimension, s, N), read off the tables of the benchmark."""
    table = "".join(subprocess.run([benchmark, "times", str(d), str(most)], check=True, capture_output=True, text=True).stdout
                    for d in sorted(dimensions))
    rows = [[cell.strip() for cell in line.strip("|\n ").split("|")] for line in table.splitlines() if line.startswith("|")]
    column = rows[0].index("with energy")
    return {(int(row[0]), float(row[1]), int(float(row[2]))): float(row[column])
            for row in rows[1:] if row[0].isdigit() and row[column]}


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    counts = [int(float(text)) for text in sys.argv[2:]] or [10**4, 10**5, 10**6]
    present = []
    for module, what, dimension, exponent, most, call in PEERS:
        try:
            present.append((importlib.import_module(module), what, dimension, exponent, most, call))
        except ImportError:
            print(f"{what}: skipped, the Python package {module} is not installed")
    if not present:
        return 0
    own = ours(sys.argv[1], {dimension for _, _, dimension, _, _, _ in present}, max(counts))
    print("| peer | d | N | peer, s | rieszflow at 1e-6, s | ratio |\n|---|---|---|---|---|---|")
    for package, what, dimension, exponent, most, call in present:
        for count in counts:
            if count > most or (dimension, exponent, count) not in own:
                continue
            theirs, mine = seconds(call(package, count)), own[dimension, exponent, count]
            print(f"| {what} | {dimension} | {count} | {theirs:.3g} | {mine:.3g} | {theirs / mine:.2g} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
