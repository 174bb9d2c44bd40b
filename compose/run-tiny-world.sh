#!/bin/sh
# Runs every backend that compose names over a world, and leaves log and report in /out. What was left unfinished by an
# earlier start with the same settings is gone on with. Without a data set of its own it makes a world first.
set -eu

fail() {
    echo "error: $*" >&2
    exit 2
}

out=${MEMARENA_CONTAINER_OUT:-/out}

# Begun as root, it holds the lock that backends look at, and becomes the owner of the mounted folder.
if [ "$(id -u)" = 0 ]; then
    if [ -d /lifetime ]; then
        exec 9>/lifetime/run
        flock 9
        cat /proc/sys/kernel/random/uuid >&9
    fi
    user=${MEMARENA_USER:-$(stat -c %u:%g "$out")}
    case $user in
        0 | 0:*) ;;
        *[!0-9:]*) fail "MEMARENA_USER: expected a user id such as 1000, or 1000:1000; found $user" ;;
        *:*) exec setpriv --reuid "${user%:*}" --regid "${user#*:}" --clear-groups "$0" "$@" ;;
        *) exec setpriv --reuid "$user" --regid "$user" --clear-groups "$0" "$@" ;;
    esac
fi

# Values of all variables whose names begin so, separated by commas: every compose file adds one of its own.
values_of() {
    env | sed -n "s/^$1[A-Z0-9_]*=//p" | sort | paste -sd, -
}

# Runs a command and sees that it ends in order when the container is told to: a shell passes no signal on by itself.
orderly() {
    told=
    "$@" &
    child=$!
    trap 'told=1; kill -TERM "$child" 2>/dev/null || :' TERM INT
    code=0
    wait "$child" || code=$?
    # A signal ends the waiting once, and the command needs some seconds to end.
    while kill -0 "$child" 2>/dev/null; do
        code=0
        wait "$child" || code=$?
    done
    trap "$ended" TERM INT
    [ -z "$told" ] || code=130
    return "$code"
}

# A path of the container as the user of the mounted folder knows it.
known() {
    echo "${MEMARENA_OUT:-$out}${1#"$out"}"
}

# The newest run that was begun with these settings and is not finished.
unfinished() {
    for each in $(ls "$begun" 2>/dev/null | sort -r); do
        if [ -d "$out/$each" ] && [ "$(cat "$begun/$each")" = "$1" ]; then
            echo "$out/$each"
            return
        fi
    done
}

# The settings of each run that is not finished, by its name.
begun=$out/.begun
preset=${MEMARENA_PRESET:-tiny}
seed=${MEMARENA_SEED:-11}

[ -w "$out" ] || fail "$out: user $(id -u) cannot write there; set MEMARENA_USER to one who can"
# For whoever asks later: `up` itself ends with 1 for whatever is not 0.
rm -f "$out/exit-code"
ended='exit 130'
trap "$ended" TERM INT
trap 'code=$?; echo "$code" > "$out/exit-code"; [ "$code" = 0 ] || echo "exit code: $code" >&2' EXIT
backends=$(values_of MEMARENA_BACKEND_)
[ -n "$backends" ] || fail "no backend: add its file, for example -f compose/bm25.yaml"
if [ -n "${MEMARENA_CELL_TOKEN:-}" ] && [ "${#MEMARENA_CELL_TOKEN}" -lt 16 ]; then
    fail "MEMARENA_CELL_TOKEN: expected at least 16 characters"
fi

if [ -n "${MEMARENA_DATASET:-}" ]; then
    world=${MEMARENA_CONTAINER_DATASET:-/dataset}
else
    world=$out/world-$preset-$seed
    # A world that is whole has its report; one that was interrupted goes on where it stopped.
    [ -e "$world/pipeline_report.json" ] || orderly masim generate --preset "$preset" --seed "$seed" --out "$world" --quiet
fi

set -- --dataset "$world" --backend "$backends" --reader "${MEMARENA_READER:-embedded}" \
    --gateway-host 0.0.0.0 --gateway-port "${MEMARENA_GATEWAY_PORT:-8100}" \
    --gateway-url "http://${MEMARENA_GATEWAY_NAME:-harness}:${MEMARENA_GATEWAY_PORT:-8100}/v1"
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

run=$(unfinished "$*")
if [ -n "$run" ]; then
    echo "going on with $(known "$run")"
else
    run=$out/run-$(date -u +%Y%m%d-%H%M%S)
    mkdir -p "$begun"
    echo "$*" > "$begun/${run##*/}"
fi
[ ! -e "$run/run.sqlite" ] || set -- "$@" --resume
code=0
orderly memarena run "$@" --out "$run" || code=$?
case $code in
    0) ;;
    3) echo "questions are left in $(known "$run"); the same command asks them" >&2 ;;
    130) echo "interrupted; the same command goes on with $(known "$run")" >&2; exit 130 ;;
    *) echo "to begin anew instead of going on with it, remove $(known "$run")" >&2; exit "$code" ;;
esac
memarena report "$run"
memarena report "$run" --format html --out "$run/report.html"
echo "report: $(known "$run/report.html")"
[ "$code" != 0 ] || rm -f "$begun/${run##*/}"
exit "$code"
