#!/usr/bin/env bash
# Two measurements on one GPU machine, one after the other, since runs that share a GPU slow each other down:
#   ase20 --only nested   seed against kernel noise: 8 seeds x 6 repeats, and deterministic runs of the same seeds
#   tacl18 --only masks   50 seeds on CPU and GPU, with masks that each device draws and with masks that both share
#
#   benchmarks/gpu/nested_and_masks.sh FOLDER [SECONDS]
#
# FOLDER gets the results as JSON, the logs, stores.tar.gz with every record, and code.txt: one hash over src/, which is
# the same for the commit that it came from (the line that makes it, run in a checkout of that commit). After SECONDS (default 500) no run is
# begun or finished any more: what has ended is kept, and the same command again goes on from there; on another machine,
# once stores.tar.gz lies in $ISORUN_DATA. PYTHON, SCALE and DEVICE are for trying it out elsewhere.
set -u -o pipefail

out=${1:?a folder for the results}
seconds=${2:-500}
python=${PYTHON:-python3}
scale=${SCALE:-gpu}
device=${DEVICE:-cuda}
cpus=$(nproc)
most_on_gpu=8
stores=.isorun/nested-and-masks
export ISORUN_DATA=${ISORUN_DATA:-gpu-data}
export PYTHONPATH=src${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1

mkdir -p "$out" "$stores"
if [ -f "$ISORUN_DATA/stores.tar.gz" ] && [ -z "$(ls -A "$stores")" ]; then
    tar -xzf "$ISORUN_DATA/stores.tar.gz" -C "$stores"
fi
find src -name '*.py' -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum > "$out/code.txt"
command -v nvidia-smi > /dev/null && nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv

reproduce() { # name, paper, part, further words
    "$python" -m isorun reproduce "$2" --scale "$scale" --only "$3" --device "$device" --store "$stores/$1" "${@:4}"
}
export -f reproduce
export python scale device stores

measure() { # name, paper, part, runs at a time: runs what is missing until the time is over
    local left=$(( seconds - SECONDS ))
    if [ "$left" -lt 5 ]; then echo "no time is left for $1"; touch "$out/$1.log"; return; fi
    timeout --signal=INT --kill-after=30 "$left" \
        bash -c 'reproduce "$0" "$1" "$2" -j "$3" > /dev/null' "$1" "$2" "$3" "$4" 2> "$out/$1.log"
    echo "$1 ended with $? after $SECONDS s; $(grep -c '^\[' "$out/$1.log") runs"
}

measure nested ase20 nested "$(( cpus < most_on_gpu ? cpus : most_on_gpu ))"
measure masks tacl18 masks "$cpus"

reproduce nested ase20 nested --recorded --json > "$out/ase20-nested-$scale.json"
reproduce masks tacl18 masks --recorded --json > "$out/tacl18-masks-$scale.json"
tar -czf "$out/stores.tar.gz" -C "$stores" .
ls -l "$out"
tail -n 2 "$out/nested.log" "$out/masks.log"
