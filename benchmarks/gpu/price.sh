#!/usr/bin/env bash
# What each step towards determinism costs on one GPU machine: LeNet5 and ResNet38 of the zoo, whole trainings on made images.
#
#   benchmarks/gpu/price.sh FOLDER [SECONDS [NETWORK]]
#
# FOLDER gets price-lenet5.json and price-resnet38.json (some 10 kB each), the same as text, the logs, and code.txt: one hash over
# src/. All of it takes about SECONDS (default 540), two fifths of it for lenet5; NETWORK: lenet5 or resnet38 alone. SECONDS
# count all that was measured: the same command again on the same machine uses it, and with more SECONDS it goes on (540 first,
# then 1080: the sets with one step less). `step_ratio` in the JSON leaves out what prepares a training, such as making
# images. Packages that the machine lacks may lie in $ISORUN_DATA/packages. PYTHON, DEVICE, RUNS, LENET and RESNET (further words
# for the trainings) are for trying it out elsewhere.
set -u -o pipefail

out=${1:?a folder for the results}
seconds=${2:-540}
python=${PYTHON:-python3}
device=${DEVICE:-cuda}
runs=${RUNS:-6}
store=.isorun/price
export ISORUN_DATA=${ISORUN_DATA:-gpu-data}
export PYTHONPATH=$PWD/src:$ISORUN_DATA/packages${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1

mkdir -p "$out" "$store"
find src -name '*.py' -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum > "$out/code.txt"
command -v nvidia-smi > /dev/null && nvidia-smi --query-gpu=name,driver_version --format=csv

price() { # network, data, seconds, further words
    local name=$1 data=$2 time=$3
    shift 3
    local words=(--runs "$runs" --seconds "$time" --store "$store" --metric test_accuracy:higher --python "$(command -v "$python")")
    local command=(python -m isorun.zoo.studies.ase20.train --network "$name" --data "$data" --made-data
        --device "$device" --seed '{seed}' "$@")
    "$python" -m isorun price "${words[@]}" --json -- "${command[@]}" > "$out/price-$name.json" 2> "$out/price-$name.log"
    echo "$name ended with $? after $SECONDS s; $(grep -c '^\[' "$out/price-$name.log") runs"
    # All is measured: this only tells it again, for people.
    [ -s "$out/price-$name.json" ] && "$python" -m isorun price "${words[@]}" -- "${command[@]}" > "$out/price-$name.txt" 2> /dev/null
}

lenet=${LENET:---train-images 20000 --test-images 2000 --epochs 60}
resnet=${RESNET:---train-images 6400 --test-images 1000 --epochs 8}
# shellcheck disable=SC2086
case ${3:-both} in
    lenet5) price lenet5 mnist "$seconds" $lenet ;;
    resnet38) price resnet38 cifar10 "$seconds" $resnet ;;
    *)
        price lenet5 mnist $(( seconds * 2 / 5 )) $lenet
        price resnet38 cifar10 $(( seconds * 3 / 5 )) $resnet
        ;;
esac
ls -l "$out"
cat "$out"/price-*.txt
tail -n 3 "$out"/price-*.log
