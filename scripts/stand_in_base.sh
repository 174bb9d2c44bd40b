#!/bin/sh
# Makes a local stand-in for a public base image where no image registry can be reached: a minimal Debian with Python.
# Usage: stand_in_base.sh IMAGE [PACKAGE...]. Needs root, debootstrap and docker. An image that is there stays.
set -eu

image=$1
shift
if docker image inspect "$image" >/dev/null 2>&1; then
    exit 0
fi
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
packages=$(printf ',%s' python3 python3-venv python3-pip ca-certificates "$@")
debootstrap --variant=minbase --include="${packages#,}" bookworm "$root/base" >"$root/log" 2>&1 || {
    tail -5 "$root/log" >&2
    echo "error: debootstrap could not make the base for $image" >&2
    exit 1
}
# Packages are fetched while images are built, through whatever the machine trusts.
cp /etc/ssl/certs/ca-certificates.crt "$root/base/etc/ssl/certs/ca-certificates.crt"
tar -C "$root/base" -c . | docker import --change 'ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt' \
    --change 'ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt' - "$image" >/dev/null
