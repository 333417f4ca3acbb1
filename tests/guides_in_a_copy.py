#!/usr/bin/env python3
"""Guides that change the source: tests/guides_in_a_copy.py SOURCE COMPILER INCLUDE... -- GUIDE.md...

The ```diff blocks of the guides, in order, are applied to a copy of the sources. Every .cpp file that they touch must
compile there without a warning, and the room `potentials` with its own tests is built and run.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def run(what, **options):
    ran = subprocess.run(list(map(str, what)), capture_output=True, text=True, **options)
    if ran.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, what))}\n{ran.stdout}{ran.stderr}")


def main():
    end = sys.argv.index("--")
    source, compiler, includes, guides = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:end], sys.argv[end + 1:]
    with tempfile.TemporaryDirectory(prefix="guides ") as folder:
        copy = pathlib.Path(folder)
        for part in ("src", "solvers", "analysis", "experiments", "tests"):
            shutil.copytree(source / part, copy / part, ignore=shutil.ignore_patterns("*.toml", "*.csv", "__pycache__"))
        touched = set()
        for guide in guides:
            for patch in re.findall(r"^```diff\n(.*?)^```$", pathlib.Path(guide).read_text(), re.MULTILINE | re.DOTALL):
                run(["patch", "-p1", "--no-backup-if-mismatch"], cwd=copy, input=patch)
                touched |= set(re.findall(r"^\+\+\+ b/(\S+)", patch, re.MULTILINE))
        base = [compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{copy}/src", f"-I{copy}", *(f"-isystem{i}" for i in includes)]
        for file in sorted(touched):
            if file.endswith(".cpp") and not file.startswith(("src/potentials/", "tests/")):
                run([*base, "-fsyntax-only", copy / file])
        tests = copy / "test_potentials"
        run([*base, "-O0", *(copy / "src/potentials").glob("*.cpp"), *(copy / "tests/potentials").glob("*_test.cpp"),
             "-o", tests, "-lgtest_main", "-lgtest", "-lmuparser", "-lfmt", "-pthread"])
        run([tests, "--gtest_brief=1"])
        print(f"{len(touched)} files changed as the guides say: they compile, and the tests of the potentials pass")


if __name__ == "__main__":
    main()
