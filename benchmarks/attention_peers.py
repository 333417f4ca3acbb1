#!/usr/bin/env python3
"""Attention of PyTorch beside ours: exact softmax and FAVOR+ written from its formula, float32, one thread.

    python3 benchmarks/attention_peers.py build/release/benchmarks/bench_attention [L ...]

Needs the Python package torch (Debian: python3-torch); skipped with a message without it. Minimum CPU time of the calls that
fit into half a second, four heads of dimension 32, 64 features, batch 1. Both programs run one after the other in the same minutes.
The allocator keeps its memory (mallopt), as otherwise every intermediate of PyTorch is mapped and unmapped and costs several times more.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before torch is imported
os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx512")

import ctypes
import subprocess
import sys
import time

try:
    import torch
except ImportError:
    print("skipped: the peers need the Python package torch (apt-get install python3-torch)")
    sys.exit(0)

HEADS, D, M = 4, 32, 64
LONGEST_EXACT = 4096  # its weights take a gigabyte for each head at 16,384
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3


def keep_memory():
    libc = ctypes.CDLL("libc.so.6")
    libc.mallopt(M_MMAP_THRESHOLD, 1 << 30)
    libc.mallopt(M_TRIM_THRESHOLD, (1 << 31) - 1)
    libc.mallopt(M_TOP_PAD, 64 << 20)


def softmax(q, k, v):
    return torch.softmax((q @ k.transpose(-1, -2)) * D**-0.5, dim=-1) @ v


def favor(omega):
    """phi_r(x) = exp(<omega_r, x> - |x|^2 / 2 - maximum), x = q d^(-1/4); Choromanski et al., ICLR 2021."""

    def features(x, axes):
        x = x * D**-0.25
        exponents = x @ omega.transpose(-1, -2) - 0.5 * (x * x).sum(-1, keepdim=True)
        return torch.exp(exponents - exponents.amax(axes, keepdim=True))

    def attention(q, k, v):
        phi_q, phi_k = features(q, -1), features(k, (-1, -2))
        sums = phi_k.transpose(-1, -2) @ v
        weights = phi_k.sum(-2).unsqueeze(-1)
        return (phi_q @ sums) / (phi_q @ weights)

    return attention


def milliseconds(call, *inputs):
    samples, begin = [], time.monotonic()
    while len(samples) < 3 or (len(samples) < 400 and time.monotonic() - begin < 0.5):
        start = time.process_time()
        call(*inputs)
        samples.append(time.process_time() - start)
    return 1e3 * min(samples)


def ours(benchmark):
    """Minima of our favor and exact softmax by L, read off the table of the benchmark."""
    table = subprocess.run([benchmark, "times"], check=True, capture_output=True, text=True).stdout
    rows = [[cell.strip() for cell in line.strip("|\n ").split("|")] for line in table.splitlines() if line.startswith("|")]
    least = lambda cell: float(cell.split(",")[0]) if cell else None
    return {int(row[0]): (least(row[1]), least(row[4]) if len(row) > 4 else None) for row in rows[1:] if row[0].isdigit()}


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    lengths = [int(text) for text in sys.argv[2:]] or [128, 256, 512, 1024, 2048, 4096, 16384]
    torch.set_num_threads(1)
    keep_memory()
    generator = torch.Generator().manual_seed(1)
    omega = torch.randn(HEADS, M, D, generator=generator)
    own = ours(sys.argv[1])
    print(f"torch {torch.__version__}, {torch.backends.mkl.is_available() and 'MKL' or 'BLAS of the system'}; ms")
    print("| L | torch softmax | torch favor | ours favor | ours softmax | torch softmax / our favor | torch favor / ours |\n|---|---|---|---|---|---|---|")
    with torch.no_grad():
        for length in lengths:
            q, k, v = (torch.randn(1, HEADS, length, D, generator=generator) for _ in range(3))
            exact = milliseconds(softmax, q, k, v) if length <= LONGEST_EXACT else None
            linear = milliseconds(favor(omega), q, k, v)
            mine, mine_exact = own[length]
            cells = [length, exact, linear, mine, mine_exact, exact and exact / mine, linear / mine]
            print("| " + " | ".join("" if cell is None else f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in cells)
                  + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
