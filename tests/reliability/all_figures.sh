#!/usr/bin/env bash
# Every figure of docs/reliability.md, in its order: tests/reliability/all_figures.sh [BUILD] [FUZZ CASES]
# One to two hours on two quiet cores with a million fuzz cases; the sanitizer builds are made where they are missing.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/release}
cases=${2:-1000000}
export GOMP_SPINCOUNT=2000

echo "== Nothing lost"
python3 tests/reliability/nothing_lost.py "$build/rieszflow"
echo "== Inputs that broke other programs"
python3 tests/reliability/cases.py "$build/rieszflow"
echo "== Fuzzed input"
mapfile -t configs < <(find experiments -name '*.toml' -not -path '*kernel_learning*' -not -path '*attention*' | sort)
"$build/tests/fuzz/fuzz_config_bytes" "$cases" 2 "${configs[@]}"
"$build/tests/fuzz/fuzz_table_bytes" "$cases" 2 experiments/kernel_learning/*.csv tests/fuzz/seeds/*
"$build/tests/fuzz/fuzz_configs" "$cases" 2 "${configs[@]}"
echo "== Coverage of intervals, memory over a million steps"
"$build/tests/test_reliability" | grep -E '%|kB|PASSED|FAILED'
echo "== Sanitizers"
for preset in asan-ubsan; do
  cmake --preset $preset >/dev/null
  cmake --build build/$preset --parallel "$(nproc)" >/dev/null
  ctest --preset $preset --parallel "$(nproc)" | tail -n 5
done
