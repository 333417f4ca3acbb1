#!/usr/bin/env python3
"""Plants known faults, one at a time, in a copy of the sources and shows that `rieszflow verify` sees each.

    tests/planted_faults/run.py [--only FAULT] [--keep DIR] [--jobs 2]

The copy is built once, from the objects of a build in build/release where ccache has them; every fault then rebuilds
what it touches and tries the claims that must turn red. Exit code 0: all claims green without a fault, at least one of
its claims red (exit code 1 of verify) with each fault.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path("build/release")

# name, file, text, text with the fault, claims that must see it
FAULTS = [
    ("missing one half of the interaction energy", "src/model/mean_field.cpp",
     "double energy = 0.5 * self.integral(", "double energy = 1.0 * self.integral(", ["interval_free_energy"]),
    ("N (N-1) for N^2 in the pair energy", "src/summation/pair_sum.cpp",
     "return sum / (particles * particles);", "return sum / (particles * (particles - 1.0));",
     ["independent_energy"]),
    ("N - 1 for N in the mean of a flock", "src/summation/pair_sum.cpp",
     "work.means[k] = sum.value() / static_cast<double>(n);",
     "work.means[k] = sum.value() / (static_cast<double>(n) - 1.0);", ["flock_marginal"]),
    ("beta for 1/beta in the noise", "solvers/particle/stepper.cpp",
     "2.0 * timestep_ / model_.inverse_temperature", "2.0 * timestep_ * model_.inverse_temperature",
     ["reflected_bias"]),
    ("projection for reflection at the wall", "solvers/particle/stepper.cpp",
     "reflect(model_.domain, y.subspan(i * d, d))", "project(model_.domain, y.subspan(i * d, d))",
     ["reflected_bias"]),
    ("proposal densities left out of the acceptance", "solvers/particle/metropolis.cpp",
     "const double log_ratio = gain + log_folded_gaussian(model.domain, here, reverse_mean, deviation) -",
     "const double log_ratio = gain + log_folded_gaussian(model.domain, proposal, mean, deviation) -",
     ["mala_bias"]),
    ("self-cell of the kernel dropped", "src/model/cell_kernel.cpp",
     "weight = average(std::span<const std::size_t>(offset.data(), counts.size()));",
     "weight = &weight == weights.data() ? 0.0 : "
     "average(std::span<const std::size_t>(offset.data(), counts.size()));", ["interval_density"]),
    ("V of the next cell", "src/model/mean_field.cpp",
     "(rule.nodes[digits % order] - 0.5) * grid.spacing(axis)",
     "(rule.nodes[digits % order] + 0.5) * grid.spacing(axis)", ["line_density"]),
    ("wrong sign of the drift of the density", "solvers/pde/scharfetter_gummel.cpp",
     "return rates(difference, lines.inverse_temperature, scale);",
     "return rates(-difference, lines.inverse_temperature, scale);", ["spectral_gap", "chemotaxis_moment"]),
    ("N - 1 for N in a Metropolis move", "solvers/rare_event/gibbs_chain.cpp",
     "exponent += beta * coupling * pair_difference / n;", "exponent += beta * coupling * pair_difference / (n - 1.0);",
     ["circle_mode_1", "interval_mean_variance"]),
    ("projection for reflection in a Metropolis move", "solvers/rare_event/gibbs_chain.cpp",
     "reflect(model_.domain, trial_);", "project(model_.domain, trial_);", ["contact"]),
    ("one particle left out of log Z", "solvers/rare_event/partition_function.cpp",
     "const double free_part = n * log_one_particle_integral(model);",
     "const double free_part = (n - 1.0) * log_one_particle_integral(model);", ["partition_interval"]),
    ("counter-term of c0 left out", "solvers/stationary/rate_function.cpp",
     "sum.add(-0.5 * (std::log1p(lambda) - lambda));", "sum.add(-0.5 * std::log1p(lambda));",
     ["correction_rotators"]),
    ("beta left out of the inverse Hessian", "solvers/stationary/rate_function.cpp",
     "field.model().inverse_temperature * (m.asDiagonal() * (w.rowwise() - mean_w))",
     "(m.asDiagonal() * (w.rowwise() - mean_w))", ["clt_interval"]),
    ("beta left out of the rate", "solvers/stationary/rate_function.cpp",
     "point.rate = beta * (free_energy_of(field, point.density) - minimum.energy.free_energy);",
     "point.rate = free_energy_of(field, point.density) - minimum.energy.free_energy;", ["rate_learned"]),
    ("missing one half in the weight of a path", "solvers/rare_event/girsanov.cpp",
     "path.log_weight -= theta * z + 0.5 * theta * theta;", "path.log_weight -= theta * z + theta * theta;",
     ["path_event"]),
    ("psi of the next rank in the entropy", "analysis/entropy.cpp", "- psi[met];", "- psi[met + 1];",
     ["entropy_line"]),
]


def run(command, **options):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          **options)


def build(copy, jobs):
    result = run(["cmake", "--build", copy / BUILD, "--target", "rieszflow_cli", "-j", jobs])
    if result.returncode != 0:
        sys.exit("the copy does not build:\n" + result.stdout[-4000:])


def verdicts(copy, claims):
    out = copy / "out"
    shutil.rmtree(out, ignore_errors=True)
    command = [copy / BUILD / "rieszflow", "verify", "--quick", "--quiet", "--out", out]
    for claim in claims:
        command += ["--only", claim]
    result = run(command)
    if result.returncode not in (0, 1):
        sys.exit(f"verify ended with {result.returncode}:\n{result.stdout}")
    rows = json.loads((out / "summary.json").read_text())["verdicts"]
    red = [row["name"] for row in rows if not row["passed"]]
    if (result.returncode == 1) != bool(red):
        sys.exit("exit code and verdicts disagree")
    return red


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], help="words in the name of a fault; repeatable")
    parser.add_argument("--keep", type=Path, help="build in this folder and leave it")
    parser.add_argument("--jobs", default=os.cpu_count())
    options = parser.parse_args()
    copy = options.keep or Path(tempfile.mkdtemp(prefix="rieszflow_faults_"))
    start = time.time()
    if not (copy / "CMakeLists.txt").exists():
        shutil.copytree(SOURCE, copy, dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("build", "out", ".git", "shared"))
    configure = ["cmake", "-S", copy, "-B", copy / BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
    if shutil.which("ccache"):
        # Commands relative to the copy are those of SOURCE/build/release relative to SOURCE.
        os.environ.update(CCACHE_BASEDIR=str(copy.resolve()), CCACHE_NOHASHDIR="1")
        configure.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
    result = run(configure)
    if result.returncode != 0:
        sys.exit(result.stdout)
    build(copy, options.jobs)
    faults = [fault for fault in FAULTS if not options.only or any(word in fault[0] for word in options.only)]
    healthy = verdicts(copy, sorted({claim for fault in faults for claim in fault[4]}))
    print(f"{'no fault':<52} {'green' if not healthy else 'RED: ' + ', '.join(healthy)}  ({time.time() - start:.0f} s)",
          flush=True)
    unseen = list(healthy)
    for name, file, text, faulty, claims in faults:
        begin = time.time()
        path = copy / file
        original = path.read_text()
        if original.count(text) < 1:
            sys.exit(f"{name}: {file} does not hold the text that the fault replaces")
        path.write_text(original.replace(text, faulty))
        try:
            build(copy, options.jobs)
            red = verdicts(copy, claims)
        finally:
            path.write_text(original)
        if not red:
            unseen.append(name)
        print(f"{name:<52} {'seen by ' + ', '.join(red) if red else 'NOT SEEN'}  ({time.time() - begin:.0f} s)",
              flush=True)
    if not options.keep:
        shutil.rmtree(copy)
    print(f"{len(faults)} faults, {len(unseen)} not seen, {time.time() - start:.0f} s")
    return 1 if unseen else 0


if __name__ == "__main__":
    sys.exit(main())
