#!/bin/sh
# Makes a world, runs every backend that compose names over it, and leaves log and report in /out.
set -eu

fail() {
    echo "error: $*" >&2
    exit 2
}

# Values of all variables whose names begin so, separated by commas: every compose file adds one of its own.
values_of() {
    env | sed -n "s/^$1[A-Z0-9_]*=//p" | sort | paste -sd, -
}

out=/out
preset=${MEMARENA_PRESET:-tiny}
seed=${MEMARENA_SEED:-11}
world=$out/world-$preset-$seed
run=$out/run-$(date -u +%Y%m%d-%H%M%S)

[ -w "$out" ] || fail "$out: user $(id -u) cannot write there; set MEMARENA_USER to the owner of the mounted folder"
backends=$(values_of MEMARENA_BACKEND_)
[ -n "$backends" ] || fail "no backend: add its file, for example -f compose/bm25.yaml"

set -- --dataset "$world" --backend "$backends" --reader "${MEMARENA_READER:-embedded}" --out "$run" \
    --gateway-host 0.0.0.0 --gateway-port 8100 --gateway-url http://harness:8100/v1
for name in $(values_of MEMARENA_DIAGNOSTIC_ | tr , ' '); do
    set -- "$@" --diagnostic "$name"
done
[ -z "${MEMARENA_MODEL:-}" ] || set -- "$@" --model "$MEMARENA_MODEL"
[ -z "${MEMARENA_EMBEDDER:-}" ] || set -- "$@" --embedder "$MEMARENA_EMBEDDER"
[ -z "${MEMARENA_EMBEDDER_MODEL:-}" ] || set -- "$@" --embedder-model "$MEMARENA_EMBEDDER_MODEL"
[ -z "${MEMARENA_EXTRACTOR:-}" ] || set -- "$@" --extractor "$MEMARENA_EXTRACTOR"
[ -z "${MEMARENA_EXTRACTOR_MODEL:-}" ] || set -- "$@" --extractor-model "$MEMARENA_EXTRACTOR_MODEL"
[ -z "${MEMARENA_HEALTH_S:-}" ] || set -- "$@" --deadline "health=$MEMARENA_HEALTH_S"
[ -z "${MEMARENA_LIMIT:-}" ] || set -- "$@" --limit "$MEMARENA_LIMIT"
[ "${MEMARENA_EDGE:-1}" = 0 ] || set -- "$@" --edge

# A world that is whole has its report; one that was interrupted goes on where it stopped.
[ -e "$world/pipeline_report.json" ] || masim generate --preset "$preset" --seed "$seed" --out "$world" --quiet
memarena run "$@"
memarena report "$run"
memarena report "$run" --format html --out "$run/report.html"
echo "report: $run/report.html"
