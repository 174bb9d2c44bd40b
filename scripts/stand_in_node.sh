#!/bin/sh
# Makes a local stand-in for node:20-slim out of the base made before and this machine's own Node.
# Usage: stand_in_node.sh IMAGE BASE
set -eu

node=$(readlink -f "$(command -v node)") || { echo "error: Node 20 is not installed here" >&2; exit 1; }
npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
cp "$node" "$root/node"
cp -r "$npm" "$root/npm"
ldd "$node" | awk '/=> \//{print $3}' | grep -v -E '/(libc|libm|libpthread|libdl|librt)\.so' | xargs -r cp -L -t "$root" 2>/dev/null || true
mkdir "$root/lib"
mv "$root"/*.so* "$root/lib" 2>/dev/null || true
cat >"$root/Dockerfile" <<'END'
ARG BASE
FROM ${BASE}
COPY node /usr/local/bin/node
COPY npm/ /usr/local/lib/node_modules/npm/
COPY lib/ /usr/local/lib/node-libraries/
ENV LD_LIBRARY_PATH=/usr/local/lib/node-libraries
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm
END
DOCKER_BUILDKIT=0 docker build -q --build-arg BASE="$2" -t "$1" "$root" >/dev/null
