#!/bin/sh
# Runs a backend and ends it once the run is over: COMMAND... Where nobody runs anything, it waits for somebody to begin.
# The harness writes another word into the file below when it begins, and holds a lock on it for as long as it lives; the
# kernel lets go of the lock however it dies.
set -eu

run=/lifetime/run
before=$(cat "$run" 2>/dev/null || :)
(
    until [ -e "$run" ] && { [ "$(cat "$run")" != "$before" ] || ! flock --shared --nonblock "$run" true; }; do
        sleep 1
    done
    flock --shared "$run" true
    kill -TERM 1
) &
exec "$@"
