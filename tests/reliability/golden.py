#!/usr/bin/env python3
"""No silent drift: three small runs against what they gave before.

    python3 tests/reliability/golden.py build/release/rieszflow            # compare
    python3 tests/reliability/golden.py build/release/rieszflow --write    # after a change that is meant to change them

On the processor that golden.json was written on the final states must have the same bits. Another one may add in
another order, so there energies and moments must agree to 1e-9.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent / "experiments" / "side_by_side"
RUNS = {
    "gaussian": ["gaussian.toml", "time.end=0.25", "particles.count=50", "particles.replicas=2", "density.cells=[128]"],
    "log_gas": ["log_gas.toml", "time.end=0.05", "time.output_every=0.05", "particles.replicas=3", "particles.scheme=mala", "density.cells=[128]"],
    "coulomb_2d": ["coulomb_2d.toml", "time.end=0.025", "time.output_every=0.025", "time.snapshots_every=0.025", "particles.count=100",
                   "particles.replicas=1", "density.cells=[32, 32]"],
}


def processor():
    """Its name: libraries choose their instructions by it."""
    try:
        fields = [line.split(":", 1) for line in open("/proc/cpuinfo") if ":" in line]
    except OSError:
        return "unknown"
    first = {}
    for key, value in fields:
        first.setdefault(key.strip(), value.strip())
    return ", ".join(first.get(key, "?") for key in ("model name", "cpu family", "model", "stepping"))


def results(binary):
    found = {}
    with tempfile.TemporaryDirectory(prefix="golden ") as folder:
        for name, (config, *overrides) in RUNS.items():
            out = pathlib.Path(folder) / name
            command = [binary, "run", ROOT / config, "--out", out, "--quiet", "--threads", "2"]
            for override in overrides:
                command += ["--set", override]
            ran = subprocess.run(command, capture_output=True, text=True)
            if ran.returncode != 0:
                raise SystemExit(f"{name}: exit {ran.returncode}: {ran.stderr}")
            summary = json.loads((out / "summary.json").read_text())
            found[name] = {side: {key: summary[side]["final"][key] for key in ("fingerprint", "second_moment", "free_energy")}
                           for side in ("particles", "density")}
    return {"processor": processor(), "runs": found}


def main():
    now, kept = results(sys.argv[1]), HERE / "golden.json"
    if "--write" in sys.argv:
        kept.write_text(json.dumps(now, indent=1) + "\n")
        return 0
    before = json.loads(kept.read_text())
    same_processor = now["processor"] == before["processor"]
    faults = []
    for name, sides in before["runs"].items():
        for side, values in sides.items():
            for key, value in values.items():
                other = now["runs"][name][side][key]
                if key == "fingerprint":
                    fault = same_processor and other != value
                else:
                    fault = abs(other - value) > 1e-9 * max(1.0, abs(value))
                if fault:
                    faults.append(f"{name}, {side}, {key}: {other}, was {value}")
    print("\n".join(faults) or f"{len(before['runs'])} runs: " + ("the same bits" if same_processor else "the same to 1e-9, on another kind of processor"))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
