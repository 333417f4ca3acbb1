#!/usr/bin/env bash
# Every figure of docs/reliability.md, in its order: tests/reliability/all_figures.sh [BUILD] [FUZZ CASES]
# One to two hours on two quiet cores with a million fuzz cases; the sanitizer builds are made where they are missing.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/release}
cases=${2:-1000000}
export GOMP_SPINCOUNT=2000
tried() { "$@" || [ $? = 77 ]; }  # 77: the script has said what it lacks

echo "== Nothing lost"
tried python3 tests/reliability/nothing_lost.py "$build/rieszflow"
echo "== Inputs that broke other programs"
tried python3 tests/reliability/cases.py "$build/rieszflow"
echo "== Fuzzed input"
mapfile -t configs < <(find experiments -name '*.toml' -not -path '*kernel_learning*' -not -path '*attention*' | sort)
"$build/tests/fuzz/fuzz_config_bytes" "$cases" 2 "${configs[@]}"
"$build/tests/fuzz/fuzz_table_bytes" "$cases" 2 experiments/kernel_learning/*.csv tests/fuzz/seeds/*
"$build/tests/fuzz/fuzz_configs" "$cases" 2 "${configs[@]}"
echo "== Many ranks"
tried python3 tests/reliability/ranks.py "$build/rieszflow"
echo "== No silent drift"
tried python3 tests/reliability/golden.py "$build/rieszflow"
echo "== Coverage of intervals, memory over a million steps"
"$build/tests/test_reliability" | grep -E '%|kB|PASSED|FAILED'
"$build/tests/test_analysis" --gtest_filter='FitRate.IntervalsCover*' | grep -E '%|PASSED|FAILED'
echo "== Sanitizers"
./setup sanitize | grep -E 'tests passed|Failed|Total Test time'
