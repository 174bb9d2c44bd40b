#!/bin/sh
# Makes Docker ready for `make compose-test` on a bare Debian: installs and starts it where it is missing, and makes
# stand-ins for the public base images where no image registry can be reached. Needs root for what is missing.
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
docker image inspect python:3.11-slim >/dev/null 2>&1 || docker pull -q python:3.11-slim >/dev/null 2>&1 ||
    "$here/stand_in_base.sh" python:3.11-slim
docker image inspect node:20-slim >/dev/null 2>&1 || docker pull -q node:20-slim >/dev/null 2>&1 ||
    "$here/stand_in_node.sh" node:20-slim python:3.11-slim
