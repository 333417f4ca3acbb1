#!/usr/bin/env python3
"""Many ranks give what one gives: `mpirun -n K rieszflow ...` against `rieszflow ...`.

    python3 tests/reliability/ranks.py build/release/rieszflow            # all of it, two and three ranks
    python3 tests/reliability/ranks.py build/release/rieszflow --quick    # two ranks

Each check prints one line: what was done how many times, and how many times it was as promised. Exit code 1 when any
was not; skipped (77) without mpirun, or for a program that was built without MPI.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from launch import GAUSSIAN_STUDY, environment, settings, with_ranks

MODEL = """
[model]
inverse_temperature = 2.0
[model.domain]
type = "box"
lower = [{lower}]
upper = [{upper}]
[[model.interaction]]
type = "log"
strength = 1.0
"""
RUN = MODEL + """
[initial]
type = "uniform"
[time]
end = {end}
output_every = {every}
[particles]
count = {count}
replicas = {replicas}
timestep = 1e-3
scheme = "{scheme}"
summation = "{summation}"
seed = 11
"""
DENSITY = """
[density]
cells = [{cells}]
"""
DEVIATIONS = MODEL.format(lower="-1.0", upper="1.0") + """
[study]
type = "large_deviations"
counts = [6, 10]
levels = [0.3]
replicates = 4
sweeps = 400
[study.statistic]
type = "mean"
"""
LEARN = """
[synthetic]
dimensions = [3]
train_rows = 60
test_rows = 60
[features]
counts = [8]
[dynamics]
end = 10.0
[experiment]
methods = ["fixed", "learned"]
seeds = 3
"""
ATTENTION = """
[study]
size = "smoke"
variants = ["uniform", "softplus", "softplus/kernel"]
[model]
layers = 1
heads = 2
head_dimensions = [4]
features = [8]
feed_forward = 16
[[dataset]]
type = "selection"
"""
INPUT, INTERRUPTED = 2, 130
TIMES = {"seconds", "cpu_seconds", "train_seconds", "inference_seconds", "total_seconds", "phase_a_seconds"}


class Check:
    def __init__(self, name):
        self.name, self.count, self.faults = name, 0, []

    def expect(self, holds, sentence):
        self.count += 1
        if not holds:
            self.faults.append(sentence)
        return holds

    def line(self):
        bad = f"{len(self.faults)} NOT AS PROMISED: {self.faults[0]}" if self.faults else "all as promised"
        return f"{self.name:<72} {self.count:>4} times  {bad}"


class Laboratory:
    def __init__(self, binary, folder):
        self.binary, self.folder = str(pathlib.Path(binary).resolve()), folder
        # Two ranks on a machine that thinks it has one core, in a container: what continuous integration has.
        self.environment = environment(OMPI_MCA_btl_vader_single_copy_mechanism="none", OMPI_MCA_rmaps_base_oversubscribe="1",
                                       OMPI_MCA_mpi_yield_when_idle="1", OMPI_MCA_hwloc_base_binding_policy="none")

    def config(self, name, text):
        path = self.folder / f"{name}.toml"
        path.write_text(text)
        return path

    def command(self, ranks, *arguments):
        return with_ranks(ranks, [self.binary, *map(str, arguments)])

    def start(self, ranks, *arguments):
        return subprocess.Popen(self.command(ranks, *arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                env=self.environment)

    def run(self, ranks, *arguments, timeout=600):
        try:
            return subprocess.run(self.command(ranks, *arguments), capture_output=True, text=True, timeout=timeout,
                                  env=self.environment)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess([], None, "", f"had not ended after {timeout} s")

    def results(self, ranks, command, config, *arguments):
        """Summary of a run with so many ranks, without times; a sentence where it did not end well."""
        out = self.folder / f"{config.stem}_{ranks}"
        shutil.rmtree(out, ignore_errors=True)
        done = self.run(ranks, command, config, "--out", out, "--threads", 1, "--quiet", *arguments)
        if done.returncode not in (0, 1):
            return f"{ranks} ranks: exit {done.returncode}: {done.stderr[-300:]}"
        left = [name for name in ("rows", "ranks") if (out / name).exists()]
        return f"{ranks} ranks left {left}" if left else without_times(json.loads((out / "summary.json").read_text()))


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items()
                if key not in TIMES and key not in ("timing", "command_line", "threads", "library")}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def first_difference(a, b, at=""):
    if isinstance(a, dict) and isinstance(b, dict):
        for key in {**a, **b}:
            found = first_difference(a.get(key), b.get(key), f"{at}.{key}")
            if found:
                return found
        return None
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return next(filter(None, (first_difference(x, y, f"{at}[{i}]") for i, (x, y) in enumerate(zip(a, b)))), None)
    return None if a == b else f"{at}: {a!r} and {b!r}"


def same(check, laboratory, command, config, all_ranks, *arguments):
    alone = laboratory.results(1, command, config, *arguments)
    for ranks in all_ranks:
        together = laboratory.results(ranks, command, config, *arguments)
        check.expect(isinstance(alone, dict) and isinstance(together, dict)
                     and first_difference(alone, together) is None,
                     f"{config.stem}, {ranks} ranks: " + (first_difference(alone, together) or str(together)))


def runs(laboratory, ranks):
    check = Check("a run: replicas, pairs in a ring, slabs of the density: the same bits")
    line, plane, space = ("-1.0", "1.0"), ("-1.0, -1.0", "1.0, 1.0"), ("-1.0, -1.0, -1.0", "1.0, 1.0, 1.0")
    cases = {
        "replicas": RUN.format(lower=line[0], upper=line[1], end=0.05, every=0.01, count=60, replicas=5,
                               scheme="reflected", summation="auto") + DENSITY.format(cells="64"),
        "mala": RUN.format(lower=line[0], upper=line[1], end=0.02, every=0.01, count=40, replicas=4, scheme="mala",
                           summation="auto"),
        "random_batch": RUN.format(lower=line[0], upper=line[1], end=0.02, every=0.01, count=41, replicas=3,
                                   scheme="projected", summation="random_batch")
                        .replace("strength = 1.0", "strength = 1.0\nsoftening = 0.1"),
        "ring": RUN.format(lower=plane[0], upper=plane[1], end=0.004, every=0.002, count=1500, replicas=1,
                           scheme="reflected", summation="direct"),
        "ring_of_few": RUN.format(lower=space[0], upper=space[1], end=0.004, every=0.002, count=130, replicas=1,
                                  scheme="reflected", summation="direct"),
        "plane": RUN.format(lower=plane[0], upper=plane[1], end=0.02, every=0.01, count=50, replicas=2,
                            scheme="reflected", summation="auto") + DENSITY.format(cells="40, 36"),
        "space": MODEL.format(lower=space[0], upper=space[1]).replace('"log"', '"coulomb"')
                 + '[initial]\ntype = "gaussian"\nmean = [0.2, 0.0, 0.0]\nstd = [0.3, 0.4, 0.3]\n'
                   "[time]\nend = 0.01\noutput_every = 0.005\n" + DENSITY.format(cells="12, 15, 10"),
    }
    for name, text in cases.items():
        same(check, laboratory, "run", laboratory.config(name, text), ranks)
    return check


def small_study(replicas):
    return settings(time__end=0.1, particles__replicas=replicas, density__cells=[128], study__values=[10, 20, 40, 80, 160])


def rows(laboratory, ranks, quick):
    check = Check("rows of a study, windows of a rare event, splits of learn, claims: the same")
    same(check, laboratory, "study", GAUSSIAN_STUDY, ranks, *small_study(200))
    same(check, laboratory, "study", laboratory.config("deviations", DEVIATIONS), ranks)
    same(check, laboratory, "learn", laboratory.config("learn", LEARN), ranks)
    if (pathlib.Path(laboratory.binary).parent / "rieszflow-attention").exists():
        same(check, laboratory, "attention", laboratory.config("attention", ATTENTION), ranks)
    verify = laboratory.folder / "verify.toml"
    verify.write_text("[verify]\nquick = true\nonly = " + json.dumps(CLAIMS[: 2 if quick else None]) + "\n")
    same(check, laboratory, "verify", verify, ranks)
    return check


CLAIMS = ["interval_density", "semicircle", "rotators_disordered", "uniform_disc"]


def ranks_of(process):
    """Process numbers of the program's ranks below mpirun."""
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(number) for number in children.read_text().split()] if children.exists() else []


def lost_rank(laboratory, times):
    check = Check("a rank is killed: all end, --resume (alone or with ranks) gives the whole run")
    config = laboratory.config("lost", RUN.format(lower="-1.0", upper="1.0", end=1.0, every=0.01, count=200, replicas=4,
                                                  scheme="reflected", summation="direct"))
    whole = laboratory.results(1, "run", config)
    for number in range(times):
        out = laboratory.folder / f"lost_{number}"
        process = laboratory.start(2, "run", config, "--out", out, "--threads", 1, "--quiet")
        while process.poll() is None and not (out / "checkpoint.h5").exists():
            time.sleep(0.02)
        for victim in ranks_of(process)[number % 2:][:1]:
            os.kill(victim, signal.SIGKILL)
        try:
            code = process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            check.expect(False, "the other rank had not ended after a minute")
            continue
        resumed = laboratory.run(1 + number % 2, "run", config, "--out", out, "--threads", 1, "--quiet", "--resume")
        again = without_times(json.loads((out / "summary.json").read_text())) if resumed.returncode == 0 else None
        check.expect(code != 0 and again is not None and first_difference(whole, again) is None,
                     f"exit {code}, resume {resumed.returncode}: {resumed.stderr[-300:]} "
                     f"{again and first_difference(whole, again)}")
    return check


def lost_rank_of_a_study(laboratory):
    check = Check("a rank of a study is killed: rows of both are kept, --resume measures the rest")
    study = GAUSSIAN_STUDY, *small_study(3000)
    whole = laboratory.results(1, "study", *study)
    out = laboratory.folder / "lost_rows"
    process = laboratory.start(2, "study", *study, "--out", out, "--threads", 1, "--quiet")
    while process.poll() is None and not (out / "rows" / "1.json").exists():
        time.sleep(0.02)
    for victim in ranks_of(process)[1:]:
        os.kill(victim, signal.SIGKILL)
    code = process.wait(timeout=120)
    kept = len(json.loads((out / "rows" / "1.json").read_text())) if (out / "rows" / "1.json").exists() else 0
    resumed = laboratory.run(2, "study", *study, "--out", out, "--threads", 1, "--quiet", "--resume")
    again = without_times(json.loads((out / "summary.json").read_text())) if resumed.returncode == 0 else None
    check.expect(code != 0 and kept > 0 and again is not None and first_difference(whole, again) is None,
                 f"exit {code}, {kept} rows kept, resume {resumed.returncode}: {resumed.stderr[-300:]}")
    return check


def asked_to_stop(laboratory):
    check = Check("SIGUSR1 to mpirun: all ranks end with a checkpoint, exit 130; --resume gives the whole run")
    config = laboratory.config("stopped", RUN.format(lower="-1.0, -1.0", upper="1.0, 1.0", end=0.4, every=0.01, count=1200,
                                                     replicas=1, scheme="reflected", summation="direct"))
    whole = laboratory.results(1, "run", config)
    out = laboratory.folder / "stopped"
    process = laboratory.start(2, "run", config, "--out", out, "--threads", 1, "--quiet")
    while process.poll() is None and not (out / "checkpoint.h5").exists():
        time.sleep(0.02)
    process.send_signal(signal.SIGUSR1)
    code = process.wait(timeout=60)
    resumed = laboratory.run(2, "run", config, "--out", out, "--threads", 1, "--quiet", "--resume")
    again = without_times(json.loads((out / "summary.json").read_text())) if resumed.returncode == 0 else None
    check.expect(code == INTERRUPTED and again is not None and first_difference(whole, again) is None,
                 f"exit {code}, resume {resumed.returncode}: {resumed.stderr[-300:]}")
    return check


def refusals(laboratory):
    check = Check("what one rank refuses, two refuse once, with its exit code")
    config = laboratory.config("refused", RUN.format(lower="-1.0", upper="1.0", end=0.01, every=0.01, count=10, replicas=2,
                                                     scheme="reflected", summation="auto"))
    out = laboratory.folder / "refused"
    laboratory.run(1, "run", config, "--out", out, "--quiet")
    again = laboratory.run(2, "run", config, "--out", out, "--quiet")
    check.expect(again.returncode == INPUT and again.stderr.count("already holds results") == 1,
                 f"exit {again.returncode}: {again.stderr[-300:]}")
    wrong = laboratory.run(2, "run", config, "--out", out, "--set", "particles.count=-1", "--quiet")
    check.expect(wrong.returncode == INPUT and wrong.stderr.count("particles.count") == 1,
                 f"exit {wrong.returncode}: {wrong.stderr[-300:]}")
    listed = laboratory.run(2, "list")
    check.expect(listed.returncode == 0, f"exit {listed.returncode}: {listed.stderr[-300:]}")
    return check


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    if shutil.which("mpirun") is None:
        print("skipped: no mpirun (Debian: openmpi-bin)")
        return 77
    with tempfile.TemporaryDirectory(prefix="ranks ") as folder:
        laboratory = Laboratory(arguments.program, pathlib.Path(folder))
        if "MPI" not in laboratory.run(1, "--version").stdout:
            print("skipped: this program was built without MPI")
            return 77
        ranks = (2,) if arguments.quick else (2, 3)
        bad = 0
        for check in (lambda: runs(laboratory, ranks), lambda: rows(laboratory, ranks, arguments.quick),
                      lambda: lost_rank(laboratory, 2 if arguments.quick else 10),
                      lambda: lost_rank_of_a_study(laboratory), lambda: asked_to_stop(laboratory),
                      lambda: refusals(laboratory)):
            result = check()
            print(result.line(), flush=True)
            bad += bool(result.faults)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
