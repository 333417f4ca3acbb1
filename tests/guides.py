#!/usr/bin/env python3
"""Runs the code of the guides: tests/guides.py BINARY GUIDE.md... (all in one folder, in this order).

```toml blocks with a first line `# name.toml` are written; the `$` lines of ```console blocks run with the program first
in PATH, must end with exit code 0 (or the one of a trailing `# exit N`) and print what follows, `...` standing for
anything; ```python blocks run in the same folder.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

try:
    import h5py  # noqa: F401  the recipes need it
except ImportError:
    print("skipped: the guides read run files with h5py (Debian: python3-h5py)")
    sys.exit(77)


def blocks(text):
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def matches(expected, printed):
    pattern = "".join(".*" if part == "..." else re.escape(part) for part in re.split(r"(\.\.\.)", expected.strip()))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def console(block, where, environment):
    for turn in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, expected = turn.partition("\n")
        code = int(re.search(r"# exit (\d+)$", command).group(1)) if "# exit" in command else 0
        ran = subprocess.run(command, shell=True, executable="/bin/bash", capture_output=True, text=True, cwd=where, env=environment)
        printed = ran.stdout + ran.stderr
        if ran.returncode != code:
            raise SystemExit(f"$ {command}\nexit {ran.returncode}, not {code}\n{printed}")
        if expected.strip() and not matches(expected, printed):
            raise SystemExit(f"$ {command}\nprinted\n{printed}\nnot\n{expected}")


def main():
    binary, guides = pathlib.Path(sys.argv[1]).resolve(), map(pathlib.Path, sys.argv[2:])
    with tempfile.TemporaryDirectory(prefix="guides ") as folder:
        where = pathlib.Path(folder)
        (where / "bin").mkdir()
        (where / "bin" / "rieszflow").symlink_to(binary)
        environment = {**os.environ, "PATH": f"{where / 'bin'}:{os.environ['PATH']}"}
        count = 0
        for guide in guides:
            for kind, block in blocks(guide.read_text()):
                count += 1
                if kind == "toml":
                    name = re.match(r"# (\S+\.toml)\n", block).group(1)
                    (where / name).write_text(block)
                elif kind == "console":
                    console(block, where, environment)
                elif kind == "diff":
                    continue  # tests/guides_in_a_copy.py
                elif kind == "python":
                    ran = subprocess.run([sys.executable, "-c", block], cwd=where, capture_output=True, text=True)
                    if ran.returncode != 0:
                        raise SystemExit(f"{guide}: {block}\n{ran.stderr}")
                else:
                    raise SystemExit(f"{guide}: a block of {shlex.quote(kind)}, which nothing runs")
        print(f"{count} blocks ran")


if __name__ == "__main__":
    main()
