#!/usr/bin/env bash
# The searches of the DREAM paper on one GPU machine (isorun reproduce dream --scale gpu): 99 searches of 25 trials.
#
#   benchmarks/gpu/dream_searches.sh FOLDER [SECONDS]
#
# FOLDER gets the result as JSON, the log, stores.tar.gz with every record and proposal, and code.txt: one hash over src/.
# After SECONDS (default 500) no run is begun any more: what has ended is kept, and the same command again goes on from
# there; on another machine, once stores.tar.gz lies in $ISORUN_DATA. $ISORUN_DATA has cifar100/ and fashion-mnist/;
# packages that the machine lacks (Optuna and what it needs, without numpy) may lie in $ISORUN_DATA/packages. PYTHON, SCALE,
# DEVICE, JOBS and MORE (further words) are for trying it out elsewhere.
set -u -o pipefail

out=${1:?a folder for the results}
seconds=${2:-500}
python=${PYTHON:-python3}
scale=${SCALE:-gpu}
device=${DEVICE:-cuda}
jobs=${JOBS:-$(nproc)}
store=.isorun/dream-searches
export ISORUN_DATA=${ISORUN_DATA:-gpu-data}
export PYTHONPATH=src:$ISORUN_DATA/packages${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1

mkdir -p "$out" "$store"
if [ -f "$ISORUN_DATA/stores.tar.gz" ] && [ -z "$(ls -A "$store")" ]; then
    tar -xzf "$ISORUN_DATA/stores.tar.gz" -C "$store"
fi
find src -name '*.py' -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum > "$out/code.txt"
if [ "$device" = cuda ] && command -v nvidia-cuda-mps-control > /dev/null; then # runs share the GPU at the same time
    export CUDA_MPS_PIPE_DIRECTORY=/tmp/mps CUDA_MPS_LOG_DIRECTORY=/tmp/mps-log
    mkdir -p "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
    nvidia-cuda-mps-control -d || true
fi

parts="--only searches --only expansion --only priorities --only feedback --only attached ${MORE:-}"
reproduce() { "$python" -m isorun reproduce dream --scale "$scale" $parts --device "$device" --store "$store" "$@"; }
export -f reproduce
export python scale device store jobs parts

timeout --signal=INT --kill-after=30 "$seconds" bash -c 'reproduce -j "$jobs" > /dev/null' 2> "$out/dream.log"
echo "ended with $? after $SECONDS s; $(grep -c '^\[' "$out/dream.log") runs"
reproduce --recorded --json > "$out/dream-$scale.json"
# What the runs' own folders hold is in the store, too.
tar -czf "$out/stores.tar.gz" -C "$store" --exclude=./runs .
ls -l "$out"
tail -n 3 "$out/dream.log"
