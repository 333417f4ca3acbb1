#!/usr/bin/env python3
"""Ranks against one: wall time of whole processes, medians of pairs that follow one another.

    python3 benchmarks/scaling.py build/release/rieszflow [--ranks 2] [--pairs 5] [--only NAME]

Every rank has one thread. A pair is one run alone and one with all ranks; the table has the median of each and of the
ratio. `empty` is the same command with nothing to do: what starting costs.
"""

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "reliability"))
from launch import GAUSSIAN_STUDY, environment, settings, with_ranks  # noqa: E402

MODEL = """
[model]
inverse_temperature = 2.0
[model.domain]
type = "box"
lower = [{lower}]
upper = [{upper}]
[[model.interaction]]
type = "{kind}"
strength = 1.0
"""
PARTICLES = """
[initial]
type = "uniform"
[time]
end = {end}
output_every = {end}
[particles]
count = {count}
replicas = {replicas}
timestep = {step}
summation = "direct"
"""
DENSITY = """
[initial]
type = "gaussian"
mean = [{mean}]
std = [{std}]
[time]
end = {end}
output_every = {end}
[density]
cells = [{cells}]
scheme = "{scheme}"
timestep = {step}
"""


def box(dimension):
    return {"lower": ", ".join(["-1.0"] * dimension), "upper": ", ".join(["1.0"] * dimension)}


def density(dimension, cells, kind, scheme, step, steps):
    return MODEL.format(**box(dimension), kind=kind) + DENSITY.format(
        mean=", ".join(["0.1"] * dimension), std=", ".join(["0.3"] * dimension), end=step * steps,
        cells=", ".join([str(cells)] * dimension), scheme=scheme, step=step)


WORK = {
    "empty": ("run", MODEL.format(**box(1), kind="log")
              + PARTICLES.format(end=1e-3, count=2, replicas=2, step=1e-3)),
    "16 replicas of 500": ("run", MODEL.format(**box(2), kind="log")
                           + PARTICLES.format(end=4.0, count=500, replicas=16, step=1e-3)),
    "ring, N = 2,000": ("run", MODEL.format(**box(3), kind="coulomb")
                        + PARTICLES.format(end=1.0, count=2000, replicas=1, step=1e-3)),
    "ring, N = 20,000": ("run", MODEL.format(**box(3), kind="coulomb")
                         + PARTICLES.format(end=0.04, count=20000, replicas=1, step=1e-3)),
    # Longer and shorter runs: their difference is steps without start, outputs and report.
    "slabs, 512^2, 100 steps alone": ("run", *(density(2, 512, "log", "semi_implicit", 1e-4, n) for n in (120, 20))),
    "slabs, 64^3, 100 steps alone": ("run", *(density(3, 64, "coulomb", "semi_implicit", 1e-4, n) for n in (120, 20))),
    "rows of a study": ("study", GAUSSIAN_STUDY.read_text()),
}
# What a ready config of them takes instead of its own.
SETTINGS = {"rows of a study": settings(particles__replicas=2000, density__cells=[256], study__values=[20, 30, 40, 60, 80, 120])}


def seconds(command):
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    if done.returncode not in (0, 3):
        raise SystemExit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr[-500:]}")
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    print(f"{'work':<32} {'one [s]':>8} {str(arguments.ranks) + ' ranks':>8} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as folder:
        for name, (command, *texts) in WORK.items():
            if arguments.only not in name:
                continue
            config = pathlib.Path(folder) / "work.toml"
            words = [str(pathlib.Path(arguments.program).resolve()), command, str(config), "--threads", "1", "--quiet",
                     "--force", "--out", folder + "/out", *SETTINGS.get(name, ())]
            alone, together = [], []
            for _ in range(arguments.pairs):
                one, several = [], []
                for text in texts:
                    config.write_text(text)
                    one.append(seconds(words))
                    several.append(seconds(with_ranks(arguments.ranks, words)))
                alone.append(one[0] - sum(one[1:]))
                together.append(several[0] - sum(several[1:]))
            ratio = statistics.median(a / b for a, b in zip(alone, together))
            print(f"{name:<32} {statistics.median(alone):8.2f} {statistics.median(together):8.2f} {ratio:6.2f}",
                  flush=True)


if __name__ == "__main__":
    main()
