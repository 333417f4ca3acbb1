#!/usr/bin/env python3
"""Inputs that broke other programs of this kind, through the program as users call it; one line each.

    python3 tests/reliability/cases.py build/release/rieszflow             # all
    python3 tests/reliability/cases.py build/release/rieszflow C5 C13      # these

What only the libraries can see (particles one ulp beyond a wall, convolutions on prime grids, attention features,
calibration at the edges of its bins) the unit tests repeat at finer grain; the cases here go the whole way from the
command line to the files. Exit code 1 when anything was not as promised.
"""

import itertools
import json
import math
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

import nothing_lost as base  # leaves with code 77 where h5py is missing

import h5py
import numpy

DONE, INPUT, MATHEMATICS, MACHINE = 0, 2, 3, 4
CASES = {}


def case(identifier, claim):
    def register(function):
        CASES[identifier] = (claim, function)
        return function
    return register


class World:
    """The program, a scratch folder of one case, and what was not as promised there."""

    def __init__(self, program, scratch, check):
        self.program, self.scratch, self.check = program, scratch, check

    def expect(self, holds, sentence):
        return self.check.expect(holds, sentence)

    def run(self, config, *options, out="out", code=DONE, says=(), environment=None):
        """`rieszflow run`; its stderr. Expects this exit code and these words; never a signal."""
        path = self.scratch / "config.toml"
        if isinstance(config, bytes):
            path.write_bytes(config)
        else:
            path.write_text(config)
        return self.call("run", path, "--out", self.scratch / out, "--quiet", *options, code=code, says=says,
                         environment=environment)

    def call(self, *arguments, code=DONE, says=(), environment=None):
        self.check.count += 1
        ran = self.program.run(*arguments, environment=environment)
        what = " ".join(map(str, arguments[-6:]))
        self.expect(ran.returncode == code, f"{what}: exit {ran.returncode}, not {code}: {ran.stderr.strip()[:300]}")
        for word in says:
            self.expect(str(word) in ran.stderr, f"{what}: no word of \"{word}\": {ran.stderr.strip()[:300]}")
        self.text = ran.stdout
        return ran.stderr

    def file(self, out="out"):
        return h5py.File(self.scratch / out / "run.h5", "r")

    def clear(self, out="out"):
        shutil.rmtree(self.scratch / out, ignore_errors=True)

    def positions(self, points, domain, out="start"):
        """A run file whose particles stand at these points: an honest run, then other numbers in it."""
        points = numpy.asarray(points, dtype=float)
        self.clear(out)
        self.run(model(domain=domain) + f"[time]\nend = 0\n[particles]\ncount = {len(points)}\ntimestep = 1e-3\n", out=out)
        with h5py.File(self.scratch / out / "run.h5", "r+") as file:
            values = file["particles/replica0/position/value"]
            values[...] = points.reshape(values.shape)
        return f"[initial]\ntype = \"file\"\nfile = \"{self.scratch / out / 'run.h5'}\"\nstate = \"particles\"\n"


LINE = 'type = "box"\nlower = [-1.0]\nupper = [1.0]'
SQUARE = 'type = "box"\nlower = [-1.0, -1.0]\nupper = [1.0, 1.0]'
DISK = 'type = "ball"\ncenter = [0.0, 0.0]\nradius = 1.0'
RIESZ = 'type = "riesz"\nexponent = 0.5\nstrength = 1.0'
LOG = 'type = "log"\nstrength = 1.0'
SMOOTH = 'type = "gaussian"\nstrength = 1.0\nlength = 0.5'
UNIFORM = '[initial]\ntype = "uniform"\n'


def model(domain=LINE, interaction=SMOOTH, potential=None, beta="2.0", initial=UNIFORM):
    text = f"[model]\ninverse_temperature = {beta}\n[model.domain]\n{domain}\n"
    if potential is not None:
        text += f"[[model.potential]]\n{potential}\n"
    return text + f"[[model.interaction]]\n{interaction}\n" + initial


def small(end=0.02, count=20, cells="[32]", timestep="1e-3", extra="", **of_model):
    return (model(**of_model) + f"[time]\nend = {end}\noutput_every = 0.01\n[particles]\ncount = {count}\n"
            f"timestep = {timestep}\n{extra}" + (f"[density]\ncells = {cells}\n" if cells else ""))


def finite(file):
    """Whether every number of the file is one; standard errors of one replica may be none."""
    bad = []
    file.visititems(lambda name, item: bad.append(name) if isinstance(item, h5py.Dataset) and item.dtype.kind == "f"
                    and not name.endswith("standard_error") and not numpy.isfinite(item[()]).all() else None)
    return bad


def inside(file, contains):
    return all(contains(item["position/value"][()]) for item in file["particles"].values())


def of_checks(world, *checks):
    for run in checks:
        done = run()
        if done is not None:
            world.check.count += done.count
            world.check.faults += done.faults


@case("C1", "killed at any instant: files open, --resume gives the whole result")
def killed(world):
    of_checks(world, lambda: base.signals(world.program, world.scratch, 20, random.Random(1), base.signal.SIGKILL, "reflected"))


@case("C2", "a damaged checkpoint is refused and names its file")
def damaged(world):
    of_checks(world, lambda: base.damaged_checkpoints(world.program, world.scratch, 40, random.Random(2)))


@case("C3", "a full disk ends a run with its file's name; earlier files stay")
def full(world):
    of_checks(world, lambda: base.full_disk(world.program, world.scratch, 2), lambda: base.read_only(world.program, world.scratch))


@case("C4", "a resumed run repeats no time and misses none")
def resumed(world):
    config = small(end=1.0, count=200)
    world.run(config, out="whole")
    world.run(config, "--max-wall", "0.05s", code=base.INTERRUPTED)
    world.run(config, "--resume")
    with world.file() as file, world.file("whole") as whole:
        times = file["density/time"][()]
        world.expect((numpy.diff(times) > 0).all(), "times do not rise")
        world.expect(numpy.array_equal(times, whole["density/time"][()]), "times differ from those of the whole run")


@case("C5", "misspelt, misplaced and repeated keys: all at once, with lines and suggestions, nothing written")
def misspelt(world):
    config = small(interaction=RIESZ).replace("exponent", "exponnent").replace("[[model.interaction]]", "[[model.interactoin]]")
    config += "count = 3\ncells = [16]\n"
    world.run(config, code=INPUT, says=["config.toml:7: model.interactoin", "did you mean \"interaction\"", "belongs to [particles]",
                                        "given twice"])
    world.run(small(interaction=RIESZ).replace("exponent", "exponnent"), code=INPUT, says=["did you mean \"exponent\"", "config.toml:9"])
    world.expect(not (world.scratch / "out").exists(), "a folder was made")


@case("C6", "another locale writes the same bytes")
@case("C9", "spaces and letters of any alphabet in paths")
def surroundings(world):
    of_checks(world, lambda: base.surroundings(world.program, world.scratch))


@case("C7", "exported times are the run's, in order, also where the last interval is shorter")
def uneven(world):
    config = small(end=0.115, count=5).replace("output_every = 0.01", "output_every = 0.01\nsnapshots_every = 0.01")
    world.run(config)
    world.call("export", world.scratch / "out" / "run.h5", "--vtk", world.scratch / "vtk")
    with world.file() as file:
        expected = {"density": file["density/time"][()], "particles": file["particles/replica0/position/time"][()]}
    world.expect(len(expected["density"]) == 13, f"{len(expected['density'])} snapshots")
    for collection in (world.scratch / "vtk").glob("*.pvd"):
        sets = xml.etree.ElementTree.parse(collection).getroot().iter("DataSet")
        times = [float(item.get("timestep")) for item in sets]
        name = "density" if "density" in collection.name else "particles"
        world.expect(times == list(expected[name]), f"{collection.name}: {times}")
        world.check.count += 1


@case("C8", "the same command twice is refused and touches nothing")
def twice(world):
    of_checks(world, lambda: base.twice(world.program, world.scratch))


@case("C10", "what can only fail is refused before; what fails later is an honest status and keeps its files")
def blow_up(world):
    quartic = 'type = "polynomial"\ncoefficients = [0.0, 0.0, 0.0, 0.0, 1.0]'
    free = 'type = "whole_space"\ndimension = 1'
    start = '[initial]\ntype = "gaussian"\nmean = [0.0]\nstd = [1.0]\n'
    wild = small(domain=free, potential=quartic, initial=start, cells=None, end=3e6, timestep="1e6").replace("output_every = 0.01", "output_every = 1e6")
    world.run(wild, code=MATHEMATICS)
    with world.file() as file:
        world.expect(not finite(file), f"not finite: {finite(file)}")
    world.expect(json.loads((world.scratch / "out" / "summary.json").read_text())["status"] != "completed", "called completed")
    world.clear()
    world.run(small(end=2e6, timestep="1e6", count=5).replace("output_every = 0.01", "output_every = 1e6"), "--set", "density.timestep=1e6")
    world.clear()
    for text in ("log(x)", "0/(x-0.5)", "sqrt(x)", "if(x > 0.3, 0/0, 0)"):
        world.run(small(potential=f'type = "expression"\nvalue = "{text}"'), code=INPUT, says=["config.toml:9: model.potential[0].value"])
        world.expect(not (world.scratch / "out").exists(), f"{text}: a folder was made")


@case("C11", "numbers survive config, file and JSON bit for bit")
def bits(world):
    for number in (0.1 + 0.2, 1 / 3, 1e-308, 5e-324, 1.7976931348623157e308, math.nextafter(1.0, 2.0)):
        config = small(potential=f'type = "quadratic"\nstiffness = {number!r}', initial=UNIFORM, end=0, cells=None)
        world.clear()
        text = (world.scratch / "config.toml")
        text.write_text(config)
        ran = world.program.run("run", text, "--out", world.scratch / "out", "--quiet")
        world.check.count += 1
        if not world.expect(ran.returncode in (DONE, MATHEMATICS, INPUT), f"{number!r}: exit {ran.returncode}: {ran.stderr}"):
            continue
        if ran.returncode == INPUT:
            continue
        for line in (world.scratch / "out" / "config.toml").read_text().splitlines():
            if line.startswith("stiffness"):
                world.expect(float(line.split("=")[1].split("#")[0]) == number, f"{number!r} became {line}")
    config = small()
    world.clear()
    world.run(config)
    summary = json.loads((world.scratch / "out" / "summary.json").read_text())
    with world.file() as file:
        last = file["observables/density/free_energy/value"][-1]
    flat = json.dumps(summary)
    world.expect(repr(float(last)) in flat or f"{float(last):.17g}" in flat, f"{last!r} is not in summary.json")


@case("C12", "one, two and three threads: the same bits")
@case("C25", "1000 particles, 10 steps, one, two and three threads: the same bits")
def threads(world):
    of_checks(world, lambda: base.threads(world.program, world.scratch, 2))


@case("C13", "limits of every number: a clear error or the sensible limit")
def limits(world):
    good = small()
    refused = ["particles.count=0", "particles.replicas=0", "density.cells=[0]", "density.cells=[]", "model.inverse_temperature=0",
               "model.inverse_temperature=-1", "model.inverse_temperature=nan", "model.domain.upper=[-1.0]", "model.domain.upper=[-2.0]",
               "time.end=-1", "time.end=nan", "time.output_every=0", "particles.timestep=0", "particles.timestep=-1",
               "particles.count=1.5", "particles.count='20'", "density.cells=32"]
    for override in refused:
        world.run(good, "--set", override, code=INPUT, says=[override.split("=")[0], "must be"])
    # Noise that no fold into the domain can resolve.
    world.run(good, "--set", "model.inverse_temperature=1e-300", code=INPUT, says=["particles.timestep", "times as long as the domain"])
    world.expect(not (world.scratch / "out").exists(), "a folder was made")
    kept = ["particles.count=1", "particles.count=2", "density.cells=[1]", "density.cells=[2]", "density.cells=[3]",
            "model.inverse_temperature=1e300", "model.inverse_temperature=inf", "model.inverse_temperature=1e-12", "time.end=0", "time.output_every=5"]
    for override in kept:
        world.clear()
        world.run(good, "--set", override)
        with world.file() as file:
            world.expect(not finite(file), f"{override}: not finite: {finite(file)}")
    world.clear()
    world.run(good, "--set", "particles.count=1")
    with world.file() as file:
        energy = file["observables/particles/interaction_energy/value"][()]
    world.expect((energy == 0).all(), f"one particle has the pair energy {energy}")
    world.clear()
    for content in (b"", b"\x00\x01\x02\xff", b"\xff\xfe[model]", b"[model\n", b"=\n", bytes(range(256))):
        world.run(content, code=INPUT, says=["config.toml"])
    world.call("run", world.scratch, code=INPUT, says=[world.scratch])
    world.call("run", world.scratch / "none.toml", code=INPUT, says=["none.toml"])


@case("C14", "coincident particles and particles on walls, corners and the sphere")
def coincident(world):
    walls = numpy.array([[-1.0, -1.0], [1.0, 1.0], [1.0, 0.3], [0.3, -1.0]])
    sphere = numpy.array([[1.0, 0.0], [0.0, -1.0], [math.sqrt(0.5), math.nextafter(math.sqrt(0.5), 0)], [-0.6, 0.8]])
    for domain, points in ((SQUARE, walls), (DISK, sphere)):
        contains = (lambda x: (abs(x) <= 1.0).all()) if domain == SQUARE else (lambda x: ((x * x).sum(-1) <= 1.0 + 1e-12).all())
        one_point = numpy.tile([0.2, 0.1], (len(points), 1))
        pair = points.copy()
        pair[1] = pair[0]
        for what, start in (("walls", points), ("a pair", pair), ("one point", one_point)):
            initial = world.positions(start, domain)
            for interaction, scheme in itertools.product((SMOOTH, LOG, RIESZ), ("projected", "reflected", "mala")):
                world.clear()
                extra = f'scheme = "{scheme}"\n'
                smooth = interaction == SMOOTH
                config = small(domain=domain, interaction=interaction, initial=initial, cells=None, count=len(start), extra=extra)
                path = world.scratch / "config.toml"
                path.write_text(config)
                ran = world.program.run("run", path, "--out", world.scratch / "out", "--quiet")
                world.check.count += 1
                name = f"{what}, {interaction.splitlines()[0]}, {scheme}"
                allowed = (DONE,) if smooth or (scheme != "projected" and what == "walls") else (DONE, INPUT, MATHEMATICS)
                if not world.expect(ran.returncode in allowed, f"{name}: exit {ran.returncode}: {ran.stderr.strip()[:200]}"):
                    continue
                world.expect(ran.returncode == DONE or len(ran.stderr) > 20, f"{name}: no sentence")
                if ran.returncode == DONE:
                    with world.file() as file:
                        world.expect(inside(file, contains), f"{name}: outside")


@case("C15", "65,537 particles: pairs beyond 32 bits are summed; beyond memory is refused with numbers")
def many(world):
    energies = {}
    for method in ("direct", "fast"):
        world.clear()
        world.run(small(end=0, count=65537, cells=None, interaction=LOG, domain=SQUARE, extra=f'summation = "{method}"\ntolerance = 1e-9\n'))
        with world.file() as file:
            energies[method] = file["observables/particles/interaction_energy/value"][0]
    # Uniform on a square of side 2: (1/2) E[-log r], expected within the fluctuation of order 1/N.
    world.expect(abs(energies["direct"] - energies["fast"]) < 1e-7 * abs(energies["direct"]), f"{energies}")
    rng = numpy.random.default_rng(3)
    pairs = rng.uniform(-1, 1, (2, 400000, 2))
    sample = -0.5 * numpy.log(numpy.hypot(*(pairs[0] - pairs[1]).T))
    world.expect(abs(energies["direct"] - sample.mean()) < 5 * sample.std() / math.sqrt(len(sample)) + 5 / math.sqrt(65537),
                 f"{energies['direct']} against {sample.mean()}")
    world.clear()
    world.run(small(), "--set", "particles.count=1000000000", "--set", "particles.replicas=1000", code=MACHINE, says=["TiB"])
    world.expect(not (world.scratch / "out").exists(), "a folder was made")


@case("C16", "odd, even, prime and one-cell grids in anisotropic boxes: the interaction energy of the plain sum")
def grids(world):
    box = 'type = "box"\nlower = [-1.0, 0.0]\nupper = [1.0, 0.3]'
    for cells in ("[1, 1]", "[1, 7]", "[13, 1]", "[12, 5]", "[31, 8]"):
        world.clear()
        # W = |x-y|^2/2 as text goes the way of any radial W, and as `quadratic` in closed form through the marginals.
        values = []
        for interaction in ('type = "expression"\nvalue = "r^2/2"', 'type = "quadratic"\nstrength = 1.0'):
            world.clear()
            world.run(model(domain=box, interaction=interaction, initial='[initial]\ntype = "expression"\ndensity = "1 + 0.7*x + y"\n')
                      + f"[time]\nend = 0.01\n[density]\ncells = {cells}\n")
            with world.file() as file:
                values.append(file["observables/density/interaction_energy/value"][()])
        # The mean over both cells of r^2/2 is exact for the closed form; the quadrature of the text is to 1e-10.
        world.expect(numpy.allclose(*values, rtol=1e-9, atol=1e-12), f"{cells}: {values}")


@case("C18", "a table that is separated perfectly, one that is all one class, one with a constant column")
def calibration(world):
    rng = random.Random(4)
    rows = [(rng.gauss(6.0 * (i % 2), 0.1), rng.gauss(0, 1), 3.0, i % 2) for i in range(80)]
    table = world.scratch / "table.csv"
    path = world.scratch / "learn.toml"
    for kind in ("ridge", "logistic"):
        table.write_text("x,y,constant,label\n" + "".join("%.6f,%.6f,%g,%d\n" % row for row in rows))
        path.write_text('[data]\nfile = "table.csv"\n[features]\ncounts = [8]\n[dynamics]\nend = 2.0\ncheck_every = 1.0\n'
                        f'[classifier]\nkind = "{kind}"\n[experiment]\nmethods = ["fixed", "learned"]\nseeds = 2\n')
        world.clear()
        world.call("learn", path, "--out", world.scratch / "out", "--quiet")
        summary = (world.scratch / "out" / "summary.json").read_text()
        world.expect("NaN" not in summary and "Infinity" not in summary, f"{kind}: a score is not finite")
    table.write_text("x,label\n" + "".join(f"{row[0]:.6f},1\n" for row in rows))
    world.clear()
    world.call("learn", path, "--out", world.scratch / "out", "--quiet", code=INPUT, says=["table.csv"])


@case("C19", "an export that cannot be written is exit 4 and names the file")
def export(world):
    world.run(small(end=0.05, count=2000))
    run_file = world.scratch / "out" / "run.h5"
    world.call("export", run_file, "--vtk", world.scratch / "no" / "such" / "folder" / "vtk")
    world.call("export", run_file, "--vtk", run_file / "vtk", code=MACHINE, says=["run.h5"])
    with base.FileSystem(world.scratch / "disk", 64) as disk:
        if disk.mounted:
            world.call("export", run_file, "--vtk", disk.place / "vtk", code=MACHINE, says=[disk.place])
            for path in (disk.place / "vtk").rglob("*.vt?"):
                xml.etree.ElementTree.parse(path)
            disk.change("ro")
            world.call("export", run_file, "--vtk", disk.place / "other", code=MACHINE, says=[disk.place])
    world.call("export", world.scratch / "none.h5", "--vtk", world.scratch / "vtk2", code=INPUT, says=["none.h5"])


@case("C20", "every exported file is valid XML")
def valid_xml(world):
    world.run(small(domain=DISK, end=0.02, count=30, cells="[8, 9]"))
    world.call("export", world.scratch / "out" / "run.h5", "--vtk", world.scratch / "vtk")
    files = sorted(path for path in (world.scratch / "vtk").rglob("*") if path.suffix in (".vti", ".vtp", ".pvd"))
    world.expect(len(files) > 4, f"only {len(files)} files")
    for path in files:
        world.check.count += 1
        if shutil.which("xmllint"):
            ran = subprocess.run(["xmllint", "--noout", path], capture_output=True, text=True)
            world.expect(ran.returncode == 0, ran.stderr[:200])
        xml.etree.ElementTree.parse(path)


@case("C21", "a coincident pair of a singular W spares the third particle")
def third(world):
    for interaction in (LOG, 'type = "coulomb"\nstrength = 1.0', 'type = "riesz"\nexponent = 1.0\nstrength = 1.0'):
        initial = world.positions([[0.1, 0.1], [0.1, 0.1], [-0.5, 0.4]], SQUARE)
        world.clear()
        world.run(small(domain=SQUARE, interaction=interaction, initial=initial, cells=None, count=3))
        with world.file() as file:
            where = file["particles/replica0/position/value"][()]
            energy = file["observables/particles/interaction_energy/value"][()]
        world.expect(numpy.isfinite(where).all(), f"{interaction}: positions {where}")
        world.expect(energy[0] == math.inf, f"{interaction}: the energy of the pair is {energy[0]}")
        world.expect(numpy.isfinite(energy[1:]).all(), f"{interaction}: the energy stays {energy[1:]}")


@case("C22", "a particle on the wall, one ulp inside, one ulp outside, on a rounded sphere")
def ulps(world):
    edge, within, beyond = 1.0, math.nextafter(1.0, 0.0), math.nextafter(1.0, 2.0)
    for summation in ("direct", "fast"):
        initial = world.positions([[edge, -edge], [within, 0.0], [0.2, edge], [0.0, 0.0]], SQUARE)
        world.clear()
        world.run(small(domain=SQUARE, interaction=LOG, initial=initial, count=4, cells="[8, 8]", extra=f'summation = "{summation}"\n'))
        with world.file() as file:
            world.expect(inside(file, lambda x: (abs(x) <= 1.0).all()), "outside the box")
    rounded = [math.sqrt(0.5), math.sqrt(0.5)]  # |x|^2 rounds up to 1 + 2e-16
    for domain, point in ((SQUARE, [beyond, 0.0]), (DISK, rounded)):
        initial = world.positions([point, [0.0, 0.0]], domain)
        world.clear()
        ran = world.run(small(domain=domain, interaction=LOG, initial=initial, count=2, cells=None), code=INPUT)
        world.expect("outside" in ran, f"one ulp outside: {ran.strip()}")
    angle = numpy.linspace(0, 6.28, 50)
    initial = world.positions(numpy.stack([numpy.cos(angle), numpy.sin(angle)], -1) * (1.0 - 2.0**-51), DISK)
    world.clear()
    world.run(small(domain=DISK, interaction=LOG, initial=initial, count=50, cells="[9, 9]"))
    with world.file() as file:
        world.expect(inside(file, lambda x: ((x * x).sum(-1) <= 1.0 + 1e-12).all()), "outside the disk")
        world.expect(not finite(file), f"not finite: {finite(file)}")


@case("C23", "particles on a lattice, fast sum")
def lattice(world):
    side = (numpy.arange(8) - 3.5) / 4
    initial = world.positions([[x, y] for x in side for y in side], SQUARE)
    for interaction in (LOG, RIESZ):
        world.clear()
        world.run(small(domain=SQUARE, interaction=interaction, initial=initial, count=64, cells=None, extra='summation = "fast"\n'))
        with world.file() as file:
            world.expect(not finite(file), f"not finite: {finite(file)}")


@case("C24", "two particles 1e-12 apart, steps ten boxes long")
def long_steps(world):
    initial = world.positions([[0.0, 0.0], [1e-12, 0.0], [0.7, -0.7]], SQUARE)
    for interaction, step in itertools.product((SMOOTH, LOG), ("1e-3", "200.0")):
        world.clear()
        world.run(small(domain=SQUARE, interaction=interaction, initial=initial, count=3, cells=None, timestep=step, end=max(0.02, 3 * float(step)),
                        beta="0.5").replace("output_every = 0.01", f"output_every = {max(0.01, float(step))}"))
        with world.file() as file:
            world.expect(inside(file, lambda x: (abs(x) <= 1.0).all()), f"{interaction}, step {step}: outside")


@case("C26", "a box as thin as 1e-9 and one outlier, fast sum: within ten times of a uniform cloud")
def thin(world):
    seconds = {}
    count = 20000
    rng = numpy.random.default_rng(5)
    cloud = rng.uniform(0, 1e-3, (count, 2)) * [1.0, 1e-9]
    cloud[0] = [1.0, 1e-9]
    for name, domain, start in (("uniform", SQUARE, rng.uniform(-1, 1, (count, 2))),
                                ("thin", 'type = "box"\nlower = [0.0, 0.0]\nupper = [1.0, 1e-9]', cloud)):
        initial = world.positions(start, domain)
        world.clear()
        begin = time.process_time(), os.times()
        world.run(small(domain=domain, interaction=LOG, initial=initial, count=count, cells=None, end=0.0,
                        extra='summation = "fast"\nseed = 3\n'), "--threads", "1")
        after = os.times()
        seconds[name] = after.children_user + after.children_system - begin[1].children_user - begin[1].children_system
        with world.file() as file:
            world.expect(not finite(file), f"{name}: not finite: {finite(file)}")
    world.expect(seconds["thin"] < 10 * seconds["uniform"], f"CPU seconds {seconds}")


@case("C27", "equal charges between walls, no background")
def charges(world):
    world.run(small(domain=DISK, interaction='type = "coulomb"\nstrength = 1.0', end=0.1, count=200, cells="[16, 16]"))
    with world.file() as file:
        world.expect(not finite(file), f"not finite: {finite(file)}")


def main():
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 2
    program, wanted = base.Program(arguments[0]), arguments[1:] or list(CASES)
    failed = False
    done = set()
    for identifier in wanted:
        claim, function = CASES[identifier]
        if function in done:
            continue
        done.add(function)
        names = [name for name, (_, other) in CASES.items() if other is function]
        check = base.Check(f"{'/'.join(sorted(names))} {claim}")
        with tempfile.TemporaryDirectory(prefix="cases ") as name:
            function(World(program, pathlib.Path(name), check))
        print(check.line(), flush=True)
        failed = failed or bool(check.faults)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
