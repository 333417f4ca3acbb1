#!/usr/bin/env bash
# 64 ranks of 8 threads each, a day; ends by itself with a checkpoint ten minutes before the limit, and goes on when it
# is submitted again:  sbatch docs/examples/slurm.sh experiments/side_by_side/log_gas.toml
#SBATCH --job-name=rieszflow
#SBATCH --ntasks=64
#SBATCH --cpus-per-task=8
#SBATCH --constraint=avx512        # nodes of one kind: bits are those of a processor level
#SBATCH --time=24:00:00
set -euo pipefail
config=$1
out=out/$(basename "$config" .toml)
continue=()
[ -e "$out/checkpoint.h5" ] || [ -e "$out/rows.json" ] && continue=(--resume)
srun --mpi=pmix --cpus-per-task="$SLURM_CPUS_PER_TASK" \
  rieszflow "${COMMAND:-run}" "$config" --out "$out" --threads "$SLURM_CPUS_PER_TASK" --max-wall 23h50m "${continue[@]}"
