#!/bin/sh
# Brings the stack of spark.yaml up, shows what the certifying run says, and ends with its exit code. The servers stay.
set -eu
cd "$(dirname "$0")"

if [ -z "${COMPOSE:-}" ]; then
    COMPOSE="docker compose"
    ! command -v docker-compose >/dev/null || COMPOSE=docker-compose
fi
stack="$COMPOSE -f spark.yaml --profile spark"

$stack up -d
run=$($stack ps -a -q certify)
[ -n "$run" ] || { echo "error: the run was not started" >&2; exit 2; }
# Ctrl-C ends the run, not only its showing.
trap 'docker stop --time 60 "$run" >/dev/null' INT TERM
docker logs -f "$run" || :
exit "$(docker wait "$run")"
