#!/bin/sh
# The server tries its model when it starts and gives up at once, so it waits until the harness's gateway listens.
set -eu
try='import os, socket, urllib.parse as parse
url = parse.urlsplit(os.environ["MEMOBASE_LLM_BASE_URL"])
socket.create_connection((url.hostname, url.port or 80), timeout=2).close()'
until .venv/bin/python -c "$try" 2>/dev/null; do
    sleep 1
done
exec .venv/bin/uvicorn api:app --host 0.0.0.0 --port 8000
