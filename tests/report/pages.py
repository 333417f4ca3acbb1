#!/usr/bin/env python3
"""Report pages of a run, of studies, of claims and of a learning experiment: tests/report/pages.py BINARY

Each is valid HTML by the parser of the standard (html5lib), fits a phone, needs nothing from elsewhere, and says which
command made it; each figure names itself, its axes and that command.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import html5lib
except ImportError:
    print("skipped: html5lib is the validator (Debian: python3-html5lib)")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2] / "experiments"
RESULTS = {
    "run": ["run", ROOT / "demo.toml", "--set", "particles.count=50", "--set", "density.cells=[64]", "--set", "time.end=0.5"],
    "plane": ["run", ROOT / "side_by_side/coulomb_2d.toml", "--set", "particles.count=50", "--set", "density.cells=[16, 16]",
              "--set", "time.end=0.025", "--set", "time.output_every=0.0125", "--set", "time.snapshots_every=0.0125"],
    "rates": ["study", ROOT / "convergence/timestep.toml", "--set", "particles.replicas=50"],
    "stationary": ["study", ROOT / "stationary/double_well_gap.toml", "--set", "study.cells=[100]", "--set", "study.values=[1, 2]"],
    "claims": ["verify", "--quick", "--only", "interval_density"],
    "learning": ["learn", ROOT / "kernel_learning/synthetic.toml", "--set", "experiment.seeds=1",
                 "--set", "synthetic.train_rows=60", "--set", "synthetic.test_rows=60", "--set", "features.counts=[4]",
                 "--set", "selection.validation_splits=1"],
}


def faults(page, command):
    parser = html5lib.HTMLParser(tree=html5lib.getTreeBuilder("etree"), namespaceHTMLElements=False)
    document = parser.parse(page)
    found = [f"line {line}: {code} {data}" for (line, _), code, data in parser.errors]
    metas = {meta.get("name"): meta.get("content") for meta in document.iter("meta")}
    if "width=device-width" not in (metas.get("viewport") or ""):
        found.append("no viewport for phones")
    if "prefers-color-scheme: dark" not in page:
        found.append("no dark colours")
    for table in document.iter("table"):
        if not any(table in list(box) for box in document.iter("div") if box.get("class") == "scroll"):
            found.append("a table that widens the page of a phone")
    for image in document.iter("img"):
        if not image.get("alt") or not (image.get("src") or "").startswith("data:"):
            found.append(f"an image without words or from elsewhere: {image.get('alt')}")
    if not any(command in " ".join("".join(block.itertext()).split()) for block in document.iter("pre")):
        found.append("the page does not say which command made it")
    return found


def main():
    binary = pathlib.Path(sys.argv[1]).resolve()
    wrong = []
    with tempfile.TemporaryDirectory(prefix="pages ") as folder:
        for name, arguments in RESULTS.items():
            out = pathlib.Path(folder) / name
            ran = subprocess.run([binary, *arguments, "--quiet", "--out", out], capture_output=True, text=True)
            if not (out / "report.html").exists():
                wrong.append(f"{name}: exit {ran.returncode}: {ran.stderr}")
                continue
            command = f"rieszflow {arguments[0]}"
            wrong += [f"{name}: {fault}" for fault in faults((out / "report.html").read_text(), command)]
            figures = sorted((out / "figures").glob("*.svg"))
            if not figures:
                wrong.append(f"{name}: no figure")
            for figure in figures:
                svg = figure.read_text()
                if name != "claims" and command not in re.search("<desc>(.*?)</desc>", svg, re.DOTALL).group(1):
                    wrong.append(f"{name}: {figure.name} does not say which command made it")
                if svg.count("<text") < 5:
                    wrong.append(f"{name}: {figure.name} has no axes")
            print(f"{name}: {len(figures)} figures")
    print("\n".join(wrong) or f"{len(RESULTS)} pages as promised")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
