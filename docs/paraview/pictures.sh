#!/usr/bin/env bash
# The pictures of docs/guides/paraview.md: docs/paraview/pictures.sh [RIESZFLOW] [FOLDER]
# Three runs (ten seconds of computing), their export, and ParaView's pvbatch; without a display inside xvfb-run.
set -euo pipefail
cd "$(dirname "$0")/../.."
program=${1:-build/release/rieszflow}
pictures=${2:-docs/images}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$program" run experiments/demo.toml --quiet --set particles.replicas=1 --set density.cells=[256] --out "$work/line"
"$program" run experiments/side_by_side/coulomb_2d.toml --quiet --set particles.replicas=1 --set density.cells=[96,96] \
  --set time.end=0.25 --set time.output_every=0.125 --out "$work/square"
"$program" run docs/paraview/wells_3d.toml --quiet --out "$work/wells"
for run in line square wells; do "$program" export "$work/$run/run.h5" --vtk "$work/$run/vtk" >/dev/null; done

display=()
[ -n "${DISPLAY:-}" ] || display=(xvfb-run --auto-servernum)
"${display[@]}" pvbatch docs/paraview/pictures.py "$work"/{line,square,wells}/vtk "$pictures"
