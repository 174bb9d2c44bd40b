"""Times pages of the viewer on a whole published grid (75 cells of 1,579 questions), requested as by a browser.

The log is written through the real writer and its cache built by the viewer itself; then each page is asked for several
times over HTTP from the server in a separate process. The bars: the first page within 1 s, any filter within 500 ms.
"""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

from _scoring_log import write_grid
from memarena.log.store import log_path
from memarena.viewer.cache_file import users_caches
from memarena.viewer.found_runs import find_runs
from rich.table import Table

TIMES = 5
FIRST_BAR_MS, FILTER_BAR_MS = 1000.0, 500.0
SIDE = "cell=rag%40mistral-7b/s2&cell=oracle%40mistral-7b/s2&view=side"
PAGES = (
    ("grid (first page)", "", FIRST_BAR_MS),
    ("questions, all", "/questions", FILTER_BAR_MS),
    ("family", "/questions?family=d7_qa", FILTER_BAR_MS),
    ("outcome", "/questions?outcome=wrong", FILTER_BAR_MS),
    ("several: stage, ego, day", "/questions?stage=misread&ego=ego_01&day=3", FILTER_BAR_MS),
    ("text, found", "/questions?q=kiln", FILTER_BAR_MS),
    ("text, found nowhere", "/questions?q=zzzz", FILTER_BAR_MS),
    ("sorted by Search", "/questions?sort=-search", FILTER_BAR_MS),
    ("last page of the wrong ones by lag", "/questions?sort=-lag&outcome=wrong&page=500", FILTER_BAR_MS),
    ("side by side", f"/questions?{SIDE}", FILTER_BAR_MS),
    ("side by side, differing, with a text", f"/questions?{SIDE}&agreement=differ&q=kiln", FILTER_BAR_MS),
    ("one question, two cells", f"/question/{{instance}}?{SIDE}", FILTER_BAR_MS),
    ("charts", "/charts", FILTER_BAR_MS),
    ("progress", "/progress", FILTER_BAR_MS),
)


def tables() -> list[Table]:
    """Write the log, have it read, time the pages."""
    with tempfile.TemporaryDirectory(prefix="memarena-bench-viewer-") as folder:
        run_dir = Path(folder) / "run"
        cells, questions = write_grid(run_dir)
        os.environ["XDG_CACHE_HOME"] = str(Path(folder) / "cache")
        (run,) = find_runs([run_dir])
        with _served(run_dir) as browser:
            began = time.perf_counter()
            while "Reading the log" in browser.page(f"/run/{run.key}"):
                time.sleep(0.2)
            built_s = time.perf_counter() - began
            instance = _first_question(browser.page(f"/run/{run.key}/questions"))
            timed = [
                (name, browser.times_ms(f"/run/{run.key}{path.format(instance=quote(instance))}"), bar)
                for name, path, bar in PAGES
            ]
        size = log_path(run_dir).stat().st_size
        cached = sum(path.stat().st_size for path in users_caches().glob("*.sqlite"))
    log = Table("", "value", title=f"A log of {cells} cells × {questions:,} questions")
    log.add_row("log", f"{size / 1e6:,.0f} MB")
    log.add_row("cache", f"{cached / 1e6:,.0f} MB")
    log.add_row("cache built in", f"{built_s:.0f} s")
    pages = Table("page", "median ms", "slowest ms", "bar ms", title=f"Pages, {TIMES} requests each")
    for name, times_ms, bar in timed:
        over = " (over)" if times_ms[-1] > bar else ""
        pages.add_row(name, f"{times_ms[len(times_ms) // 2]:.0f}", f"{times_ms[-1]:.0f}{over}", f"{bar:.0f}")
    return [log, pages]


class _Browser:
    """Asks with the cookie, a connection for each request."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        assert parts.port is not None
        self._port = parts.port
        self._cookie = f"memarena_{parts.port}={parts.query.removeprefix('token=')}"

    def page(self, path: str) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            connection.request("GET", path, headers={"Cookie": self._cookie})
            response = connection.getresponse()
            text = response.read().decode()
            assert response.status == 200, (path, response.status, text[:300])
            return text
        finally:
            connection.close()

    def times_ms(self, path: str) -> list[float]:
        result = []
        for _ in range(TIMES):
            began = time.perf_counter()
            self.page(path)
            result.append(1000 * (time.perf_counter() - began))
        return sorted(result)


@contextmanager
def _served(run_dir: Path) -> Iterator[_Browser]:
    command = [sys.executable, "-m", "memarena", "view", str(run_dir)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield _Browser(process.stdout.readline().strip())
        finally:
            process.terminate()


def _first_question(page: str) -> str:
    return page.partition("/question/")[2].partition("?")[0]
