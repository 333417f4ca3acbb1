#!/usr/bin/env python3
"""Nothing is lost: figures for kills, interruptions, full disks, damaged checkpoints and odd surroundings.

    python3 tests/reliability/nothing_lost.py build/release/rieszflow            # the full figures, minutes
    python3 tests/reliability/nothing_lost.py build/release/rieszflow --quick    # a tenth of them

Each check prints one line: what was done how many times, and how many times it was as promised. Exit code 1 when any
was not. Instants and damages are drawn from a fixed seed; the instants are fractions of the measured length of
one run, so the machine decides what they hit. Checks that need a mounted file system are skipped, with a message, for users who
cannot mount one.
"""

import argparse
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

try:
    import h5py
except ImportError:
    print("skipped: this test reads run files with h5py (Debian: python3-h5py)")
    sys.exit(77)

CONFIG = """
[model]
inverse_temperature = 2.0
[model.domain]
type = "box"
lower = [-1.0]
upper = [1.0]
[[model.interaction]]
type = "log"
strength = 1.0
[initial]
type = "uniform"
[time]
end = {end}
output_every = 0.01
[particles]
count = {count}
replicas = 2
timestep = 1e-3
scheme = "{scheme}"
seed = 11
[density]
cells = [64]
"""

INTERRUPTED, INPUT, MACHINE = 130, 2, 4


class Check:
    """Counts what was as promised; keeps the first sentences of what was not."""

    def __init__(self, name):
        self.name, self.count, self.faults = name, 0, []

    def expect(self, holds, sentence):
        if not holds:
            self.faults.append(sentence)
        return holds

    def line(self):
        bad = f"{len(self.faults)} NOT AS PROMISED: {self.faults[0]}" if self.faults else "all as promised"
        return f"{self.name:<58} {self.count:>5} times  {bad}"


class Program:
    def __init__(self, binary):
        self.binary = str(pathlib.Path(binary).resolve())

    def command(self, *arguments):
        return [self.binary, *map(str, arguments)]

    def run(self, *arguments, environment=None, timeout=300):
        """Runs to the end; a run that does not end has the exit code None."""
        command = self.command(*arguments)
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=timeout,
                                  env=None if environment is None else {**os.environ, **environment})
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, None, "", f"had not ended after {timeout} s")


def config(folder, scheme="reflected", end=0.4, count=100):
    path = folder / f"{scheme}.toml"
    path.write_text(CONFIG.format(scheme=scheme, end=end, count=count))
    return path


def fingerprint(run_file):
    """Hash of every array of a run file: names, shapes and bits; no attributes (the command line is one)."""
    digest = hashlib.sha256()

    def add(name, item):
        if isinstance(item, h5py.Dataset):
            digest.update(f"{name} {item.shape} {item.dtype}".encode())
            digest.update(item[()].tobytes() if item.dtype.kind != "O" else repr(item[()]).encode())

    with h5py.File(run_file, "r") as file:
        file.visititems(add)
    return digest.hexdigest()


def rising(run_file):
    """Whether the times of every series and snapshot rise strictly."""
    with h5py.File(run_file, "r") as file:
        times = []
        file.visititems(lambda name, item: times.append(item[()]) if name.endswith("/time") else None)
    return all((later > earlier).all() for later, earlier in ((t[1:], t[:-1]) for t in times if t.ndim == 1))


def unreadable(folder):
    """Files that a killed run left and that do not open; temporary files do not count."""
    bad = []
    for path in folder.rglob("*"):
        try:
            if path.suffix == ".h5":
                with h5py.File(path, "r") as file:
                    file.visititems(lambda _, item: item[()] if isinstance(item, h5py.Dataset) else None)
            elif path.suffix == ".json":
                json.loads(path.read_text())
        except (OSError, ValueError) as error:
            bad.append(f"{path.name}: {error}")
    return bad


def reference(program, path, folder):
    start = time.monotonic()
    ran = program.run("run", path, "--out", folder, "--quiet")
    assert ran.returncode == 0, ran.stderr
    return fingerprint(folder / "run.h5"), time.monotonic() - start


def stopped(program, path, out, delay, number):
    """Starts a run, sends it a signal after `delay` seconds; its exit code and the seconds it took to end."""
    process = subprocess.Popen(program.command("run", path, "--out", out, "--quiet"), stderr=subprocess.PIPE)
    try:
        process.wait(timeout=delay)
    except subprocess.TimeoutExpired:
        process.send_signal(number)
    sent = time.monotonic()
    process.communicate(timeout=600)
    return process.returncode, time.monotonic() - sent


def signals(program, scratch, times, chance, number, scheme):
    name = signal.Signals(number).name
    check = Check(f"{name} at a random instant ({scheme}), then --resume")
    path = config(scratch, scheme)
    expected, seconds = reference(program, path, scratch / "whole")
    slowest, hit = 0.0, 0
    for _ in range(times):
        out = scratch / "stopped"
        check.count += 1
        code, wait = stopped(program, path, out, chance.uniform(0.0, seconds), number)
        hit += code != 0
        slowest = max(slowest, wait)
        if number != signal.SIGKILL:
            unborn = code == -number and not out.exists()  # hit before the program listened, and before it wrote
            check.expect(code in (0, INTERRUPTED) or unborn, f"exit code {code}")
        bad = unreadable(out) if out.exists() else []
        check.expect(not bad, f"unreadable {bad}")
        ran = program.run("run", path, "--out", out, "--resume", "--quiet")
        if check.expect(ran.returncode == 0, f"resume: exit {ran.returncode}: {ran.stderr.strip()}"):
            check.expect(fingerprint(out / "run.h5") == expected, "another result after --resume")
            check.expect(rising(out / "run.h5"), "times that do not rise")
        shutil.rmtree(out, ignore_errors=True)
    shutil.rmtree(scratch / "whole")
    check.name += f"; {hit} hit the run" + ("" if number == signal.SIGKILL else f", slowest end {slowest:.2f} s")
    return check


def damaged_checkpoints(program, scratch, times, chance):
    check = Check("checkpoint truncated or with a flipped bit")
    path, out = config(scratch, end=4.0), scratch / "damaged"
    _, seconds = reference(program, path, out)
    for share in (3, 10, 30, 100):  # the machine may have been slower a moment ago
        ran = program.run("run", path, "--out", out, "--quiet", "--force", "--max-wall", f"{seconds / share:.3f}s")
        if ran.returncode == INTERRUPTED:
            break
    assert ran.returncode == INTERRUPTED, f"exit {ran.returncode}: {ran.stderr}"
    checkpoint = out / "checkpoint.h5"
    whole = checkpoint.read_bytes()
    others = {p: p.read_bytes() for p in out.rglob("*") if p.is_file() and p != checkpoint}
    for turn in range(times):
        check.count += 1
        if turn < 2:
            damaged = whole[:1] if turn == 0 else whole[:len(whole) // 2]
        elif chance.random() < 0.3:
            damaged = whole[:chance.randrange(len(whole))]
        else:
            place = chance.randrange(len(whole))
            damaged = whole[:place] + bytes([whole[place] ^ 1 << chance.randrange(8)]) + whole[place + 1:]
        checkpoint.write_bytes(damaged)
        ran = program.run("run", path, "--out", out, "--resume", "--quiet")
        check.expect(ran.returncode == MACHINE and "checkpoint.h5" in ran.stderr,
                     f"{len(damaged)} of {len(whole)} bytes: exit {ran.returncode}: {ran.stderr.strip()[:200]}")
        touched = [p.name for p, content in others.items() if p.read_bytes() != content]
        check.expect(not touched, f"touched {touched}")
    shutil.rmtree(out)
    return check


class FileSystem:
    """A small file system of its own; None where it cannot be mounted."""

    def __init__(self, place, kilobytes):
        self.place = place
        place.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "rieszflow-test", place],
                                 capture_output=True)
        self.mounted = mounted.returncode == 0

    def change(self, options):
        subprocess.run(["mount", "-o", f"remount,{options}", self.place], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.mounted:
            subprocess.run(["umount", "-l", self.place], check=True)
        self.place.rmdir()


def full_disk(program, scratch, times):
    check = Check("disk full, then room and --resume")
    path = config(scratch)
    expected, _ = reference(program, path, scratch / "whole")
    size = sum(p.stat().st_size for p in (scratch / "whole").rglob("*") if p.is_file()) // 1024
    for turn in range(times):
        kilobytes = max(16, size * (turn + 1) // (times + 1))
        with FileSystem(scratch / "disk", kilobytes) as disk:
            if not disk.mounted:
                print("disk full, read-only folder: skipped, this user cannot mount a file system")
                return None
            check.count += 1
            out = disk.place / "out"
            ran = program.run("run", path, "--out", out, "--quiet")
            # The plan refuses what cannot fit and names the disk; what fills it later names the file.
            check.expect(ran.returncode == MACHINE and str(disk.place) in ran.stderr,
                         f"{kilobytes} kB: exit {ran.returncode}: {ran.stderr.strip()[:200]}")
            bad = unreadable(out)
            check.expect(not bad, f"{kilobytes} kB: unreadable {bad}")
            disk.change("size=100M")
            ran = program.run("run", path, "--out", out, "--resume", "--quiet")
            if check.expect(ran.returncode == 0, f"{kilobytes} kB: resume: exit {ran.returncode}: {ran.stderr.strip()[:200]}"):
                check.expect(fingerprint(out / "run.h5") == expected, f"{kilobytes} kB: another result after --resume")
    shutil.rmtree(scratch / "whole")
    return check


def read_only(program, scratch):
    check = Check("read-only folder")
    path = config(scratch)
    with FileSystem(scratch / "disk", 10000) as disk:
        if not disk.mounted:
            return None
        disk.change("ro")
        check.count += 1
        ran = program.run("run", path, "--out", disk.place / "out", "--quiet")
        check.expect(ran.returncode == MACHINE and str(disk.place) in ran.stderr,
                     f"exit {ran.returncode}: {ran.stderr.strip()}")
    return check


def threads(program, scratch, times):
    check = Check("1, 2 and 3 threads: the same bits")
    path = config(scratch, end=0.05, count=1000)
    prints = set()
    for turn in range(times):
        for count in (1, 2, 3):
            check.count += 1
            ran = program.run("run", path, "--out", scratch / "threads", "--quiet", "--force", "--threads", count)
            check.expect(ran.returncode == 0, ran.stderr)
            prints.add(fingerprint(scratch / "threads" / "run.h5"))
    check.expect(len(prints) == 1, f"{len(prints)} different results")
    shutil.rmtree(scratch / "threads")
    return check


def surroundings(program, scratch):
    check = Check("locale, time zone, name of the folder: the same bytes")
    path = config(scratch, end=0.05)
    results = {}
    locales = subprocess.run(["locale", "-a"], capture_output=True, text=True).stdout
    german = "de_DE.UTF-8" if "de_DE.utf8" in locales else None
    if german is None:
        print("locale: de_DE.UTF-8 is not installed, only the time zone and the folder's name are tried")
    for name, environment in {"plain": {}, "locale": {"LC_ALL": german or "C"},
                              "time zone": {"TZ": "Pacific/Kiritimati"}}.items():
        check.count += 1
        out = scratch / "out dir" / "ümlaut ρ"
        shutil.rmtree(out, ignore_errors=True)
        ran = program.run("run", path, "--out", out, "--quiet", environment=environment)
        check.expect(ran.returncode == 0, f"{name}: exit {ran.returncode}: {ran.stderr.strip()}")
        ran = program.run("export", out / "run.h5", "--vtk", out / "vtk", environment=environment)
        check.expect(ran.returncode == 0, f"{name}: export: exit {ran.returncode}: {ran.stderr.strip()}")
        # The page and the summary hold seconds of computing.
        results[name] = {p.name: p.read_bytes() for p in sorted(out.rglob("*"))
                         if p.is_file() and p.suffix in (".h5", ".toml", ".vti", ".vtp", ".pvd")
                         and not p.name.startswith("checkpoint")}
        check.expect(len(results[name]) > 4, f"{name}: only {list(results[name])}")
    for name, files in results.items():
        other = [file for file in files if files[file] != results["plain"].get(file)]
        check.expect(not other and files.keys() == results["plain"].keys(), f"{name}: other bytes in {other[:3]}")
    shutil.rmtree(scratch / "out dir")
    return check


def twice(program, scratch):
    check = Check("the same command twice")
    path, out = config(scratch, end=0.05), scratch / "twice"
    program.run("run", path, "--out", out, "--quiet")
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in out.rglob("*") if p.is_file()}
    check.count += 1
    ran = program.run("run", path, "--out", out, "--quiet")
    check.expect(ran.returncode == INPUT and all(word in ran.stderr for word in ("--resume", "--force", "--out")),
                 f"exit {ran.returncode}: {ran.stderr.strip()}")
    after = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in out.rglob("*") if p.is_file()}
    check.expect(before == after, "files were touched")
    shutil.rmtree(out)
    return check


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--quick", action="store_true", help="a tenth of the repetitions")
    parser.add_argument("--seed", type=int, default=1, help="of instants and damages")
    options = parser.parse_args()
    program, chance = Program(options.binary), random.Random(options.seed)
    share = 10 if options.quick else 1
    with tempfile.TemporaryDirectory(prefix="nothing lost ") as name:
        scratch = pathlib.Path(name)
        checks = [
            lambda: signals(program, scratch, 200 // share, chance, signal.SIGKILL, "reflected"),
            lambda: signals(program, scratch, 20 // share, chance, signal.SIGKILL, "mala"),
            lambda: signals(program, scratch, 40 // share, chance, signal.SIGINT, "reflected"),
            lambda: signals(program, scratch, 20 // share, chance, signal.SIGTERM, "mala"),
            lambda: damaged_checkpoints(program, scratch, 1000 // share, chance),
            lambda: full_disk(program, scratch, 20 // share),
            lambda: read_only(program, scratch),
            lambda: threads(program, scratch, 5 if share == 1 else 1),
            lambda: surroundings(program, scratch),
            lambda: twice(program, scratch),
        ]
        failed = False
        for run in checks:
            check = run()
            if check is not None:
                print(check.line(), flush=True)
                failed = failed or bool(check.faults)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
