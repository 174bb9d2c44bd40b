"""Runs the shell blocks of the documentation and fails if a command fails.

    python scripts/documented_commands.py [FILE...]

A shell block is a fence with the info string ``sh``. Its commands run in order, in a new folder for each block, with
the programs of this environment, and must end with exit code 0. The placeholders of the documentation exist there under
their names, unless the block makes them: ``DIR`` and ``WORLD`` are data sets; ``RUN``, ``RUN_A`` and ``RUN_B`` finished
runs; ``FILE`` a file in LoCoMo's format; ``my-backend`` a backend. In the commands ``URL`` is replaced by the address
of a reader, ``HOST:PORT`` by that of a backend, ``ID`` by that of a question, ``PORT`` and ``127.0.0.1:50051`` by free
ports.

A command that serves until it is stopped must print its address and end with 0 on Ctrl-C; one that ends with ``&`` runs
until the block ends. Three blocks run at a time, equal ones once. A fence ``LANGUAGE file=NAME`` is written to a file
for the later blocks of its document. A fence ``sh skip=REASON`` (one of :data:`REASONS`) does not run, nor does a line
with an ellipsis before its comment: it is a usage line.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue

ROOT = Path(__file__).resolve().parent.parent
REASONS = {
    "gate": "a separate step of .ci/run",
    "docker": "needs Docker; tests/compose runs it",
    "gpu": "needs a GPU or a Spark",
    "key": "needs a user's key or server",
    "hours": "takes hours",
    "test": "a separate test runs it",
    "browser": "after something was done in a browser; tests/viewer runs it",
    "install": "changes the machine or needs the network",
    "form": "shows what a command looks like, or what a file holds",
}
PROGRAMS = ("memarena", "memarena-spark", "masim", "make", "docker", "python", "python3", "pip", "git", "cd", "export")
_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```\s*$", re.S | re.M)
_SERVES = re.compile(r"\bmemarena (?:view|annotate) (?!.*--(?:export|import))|--listen\b")
_ADDRESS = re.compile(r"http://\S+|listening on \S+")
LIMIT_S = 480.0
STOP_S = 30.0
BLOCKS_AT_A_TIME = 3
SERVES_S = 0.2
"""Seconds that a server must stay up after it printed its address."""
FAMILIES = ("d3_confabulation", "d4_permission", "d7_qa")
"""Files of questions; one question of each is used, since an answer of the embedded LLM takes seconds."""
GRID = """[[worlds]]
dataset = "DIR"
[[memories]]
name = "bm25"
[[memories]]
name = "oracle"
[[readers]]
spec = "extractive"
"""
"""The grid that docs/sweeps.md runs, without readers that need a GPU."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fence: its file and line, its info string (such as ``sh skip=gpu`` or ``toml``), its lines without indent."""

    path: Path
    line: int
    info: str
    lines: tuple[str, ...]

    @property
    def location(self) -> str:
        """Return ``file:line``."""
        return f"{self.path}:{self.line}"

    @property
    def file(self) -> str | None:
        """Return the name of the file to write the block to; None if it is not a file."""
        match = re.fullmatch(r"\w+ file=(\S+)", self.info)
        return match[1] if match else None

    @property
    def skipped(self) -> str | None:
        """Return why the block does not run; None if it runs."""
        match = re.fullmatch(r"sh skip=(\w+)", self.info)
        return match[1] if match else None

    def commands(self) -> list[str]:
        """Return the commands in order: lines that end with a backslash joined, without comments and usage lines."""
        joined = "\n".join(self.lines).replace("\\\n", " ")
        bare = [re.sub(r"(?:^|\s+)# .*$", "", line).strip() for line in joined.splitlines()]
        return [line for line in bare if line and "…" not in line and not line.startswith("#")]


class DocumentedCommandError(Exception):
    """The info string of a block is invalid, or a command failed; one line, then the command's output."""


def documents() -> list[Path]:
    """Return the files of the repository whose commands run, relative to its root."""
    tracked = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return [Path(name) for name in tracked if not name.startswith(("docs/adr/", "docs/experiments/", "tests/"))]


def blocks_of(path: Path) -> list[Block]:
    """Return all fences of a file. Raises :class:`DocumentedCommandError` for an unknown info string."""
    text = (ROOT / path).read_text(encoding="utf-8")
    blocks = []
    for match in _FENCE.finditer(text):
        lines = tuple(line.removeprefix(match["indent"]) for line in match["body"].splitlines())
        block = Block(path, text[: match.start()].count("\n") + 1, match["info"].strip(), lines)
        _check(block)
        blocks.append(block)
    return blocks


def _check(block: Block) -> None:
    if block.info.startswith("sh ") and block.file is None and block.skipped not in REASONS:
        reasons = ", ".join(REASONS)
        raise DocumentedCommandError(f"{block.location}: {block.info!r}: expected sh, or sh skip=REASON, of {reasons}")
    first = next((line.split() for line in block.lines if line.split()), [""])
    if not block.info and first[0] in PROGRAMS:
        raise DocumentedCommandError(f"{block.location}: commands need a fence with info string sh, or sh skip=REASON")


class Shell:
    """Runs commands, and logs their output to files in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "BROWSER": "true",  # the program that --open starts: true(1) does nothing
        }
        self._children: list[subprocess.Popen[bytes]] = []

    def end(self) -> None:
        """Kill every process that the commands so far started and did not end."""
        for child in self._children:
            _kill(child.pid)
            child.wait()
        self._children.clear()

    def call(self, command: str, folder: Path) -> None:
        """Run a command to its end. Its background processes run until :meth:`end`.

        Raises:
            DocumentedCommandError: it ended with another code than 0, or not in time.
        """
        child, log = self._start(["bash", "-euo", "pipefail", "-c", command], folder)
        try:
            code = child.wait(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            raise DocumentedCommandError(f"not at its end after {LIMIT_S:.0f} s\n{_log_text(log)}") from None
        if code:
            raise DocumentedCommandError(f"exit code {code}\n{_log_text(log)}")

    def serve(self, command: str, folder: Path, *, stop: bool) -> None:
        """Start a server and wait for its address; then ``stop`` it as Ctrl-C does, or let it run until :meth:`end`.

        Raises:
            DocumentedCommandError: it ended by itself, or with a code that is not 0.
        """
        child, log = self._start(["bash", "-c", f"exec {command}"], folder)
        until = time.monotonic() + LIMIT_S
        while child.poll() is None and not _ADDRESS.search(_log_text(log)):
            if time.monotonic() > until:
                raise DocumentedCommandError(f"no address after {LIMIT_S:.0f} s\n{_log_text(log)}")
            time.sleep(0.05)
        time.sleep(SERVES_S)
        if child.poll() is not None:
            raise DocumentedCommandError(f"exit code {child.returncode}\n{_log_text(log)}")
        if stop:
            os.killpg(child.pid, signal.SIGINT)
            try:
                code = child.wait(timeout=STOP_S)
            except subprocess.TimeoutExpired:
                raise DocumentedCommandError(f"still there {STOP_S:.0f} s after Ctrl-C\n{_log_text(log)}") from None
            if code:
                raise DocumentedCommandError(f"exit code {code} on Ctrl-C\n{_log_text(log)}")

    def _start(self, command: Sequence[str], folder: Path) -> tuple[subprocess.Popen[bytes], Path]:
        log = Path(tempfile.mkstemp(dir=self.folder)[1])
        with log.open("wb") as out:
            child = subprocess.Popen(
                command, cwd=folder, env=self.env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        self._children.append(child)
        return child, log


def make_originals(folder: Path) -> tuple[Path, str]:
    """Make what the placeholders of the documentation name: a small data set, finished runs, files.

    Returns their folder and the id of a question of the data set.
    """
    originals = folder / "kept"
    dataset = originals / "DIR"
    shutil.copytree(ROOT / "tests/data/example", dataset)
    ids = []
    for path in sorted((dataset / "eval_instances").iterdir()):
        rows = path.read_text(encoding="utf-8").splitlines(keepends=True)[:1] if path.stem in FAMILIES else []
        path.write_text("".join(rows), encoding="utf-8")
        ids += [str(json.loads(row)["instance_id"]) for row in rows]
    shutil.copytree(dataset, originals / "WORLD")
    answers = "".join(json.dumps({"instance_id": instance_id, "answer": "I don't know."}) + "\n" for instance_id in ids)
    (originals / "answers.jsonl").write_text(answers, encoding="utf-8")
    (originals / "grid.toml").write_text(GRID, encoding="utf-8")
    (originals / "FILE").write_text(json.dumps([_LOCOMO]), encoding="utf-8")
    backend = originals / "my-backend"
    backend.write_text('#!/bin/sh\nexec python -m memarena_backend_bm25 "$@"\n', encoding="utf-8")
    backend.chmod(0o755)
    shell = Shell(folder)
    try:
        for name, memories in (("RUN", "bm25,vanilla,oracle"), ("RUN_B", "bm25,oracle")):
            shell.call(f"memarena run --dataset DIR --backend {memories} --reader extractive --out {name}", originals)
    finally:
        shell.end()
    shutil.copytree(originals / "RUN", originals / "RUN_A")
    return originals, ids[0]


class Sandbox(Shell):
    """Runs blocks, each in a folder with copies of ``originals``, and knows what the other placeholders are."""

    def __init__(self, folder: Path, originals: Path, question_id: str) -> None:
        super().__init__(folder)
        self._originals = originals
        self._substitutes = {"ID": question_id}

    def use(self, reader_url: str, backend_address: str) -> None:
        """Let ``URL`` and ``HOST:PORT`` be these from now on."""
        self._substitutes |= {"URL": reader_url, "HOST:PORT": backend_address}

    def folder_for(self, block: Block, files: Sequence[Block]) -> Path:
        """Return a new folder with what the block's commands name, and with the files of earlier blocks."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        text = "\n".join(block.commands())
        for path in self._originals.iterdir():
            if re.search(rf"--(?:out|export) {path.name}(?!\S)", text):
                continue
            if path.is_dir():
                shutil.copytree(path, folder / path.name)
            else:
                shutil.copy(path, folder)
        for name in ("tests", "spark", "compose"):
            (folder / name).symlink_to(ROOT / name)
        self._substitutes |= {"127.0.0.1:50051": f"127.0.0.1:{_free_port()}", "PORT": str(_free_port())}
        for listing in files:
            assert listing.file is not None
            (folder / listing.file).write_text(self.substitute("\n".join(listing.lines)) + "\n", encoding="utf-8")
            (folder / listing.file).chmod(0o755)
        return folder

    def substitute(self, command: str) -> str:
        """Return the command with addresses and ids for ``URL`` and the other placeholders."""
        for name, value in self._substitutes.items():
            command = re.sub(rf"(?<![\w$:]){re.escape(name)}(?!\w)", value, command)
        return command


_LOCOMO = {
    "sample_id": "one",
    "conversation": {
        "speaker_a": "Ada",
        "speaker_b": "Ben",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ada", "dia_id": "D1:1", "text": "I've joined the choir at the harbour."},
            {"speaker": "Ben", "dia_id": "D1:2", "text": "The one that sings on Thursdays? I heard them once."},
        ],
    },
    "qa": [{"question": "What has Ada joined?", "answer": "the choir", "evidence": ["D1:1"], "category": 4}],
}


def _log_text(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")


def _kill(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def _server(folder: Path, module: str, *arguments: str) -> Iterator[str]:
    """Start a module of the project as a server in its own process; yield the address that it wrote to its file."""
    address_file = folder / f"{module}.address"
    child = subprocess.Popen(
        [sys.executable, "-m", module, "--address-file", str(address_file), *arguments], stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + LIMIT_S
        while not address_file.exists():
            if child.poll() is not None or time.monotonic() > until:
                raise DocumentedCommandError(f"{module} did not start")
            time.sleep(0.05)
        yield address_file.read_text(encoding="utf-8").strip()
    finally:
        child.terminate()
        child.wait()


def run_block(block: Block, sandbox: Sandbox, files: Sequence[Block]) -> int:
    """Run the commands of a block, end what they started, and return the number of commands.

    Raises:
        DocumentedCommandError: a command failed; the message begins with its file and line.
    """
    folder = sandbox.folder_for(block, files)
    setup_commands: list[str] = []
    try:
        for command in block.commands():
            prepared = sandbox.substitute(command)
            in_background = prepared.endswith("&")
            try:
                if in_background or _SERVES.search(prepared):
                    sandbox.serve(prepared.removesuffix("&"), folder, stop=not in_background)
                else:
                    sandbox.call("\n".join([*setup_commands, prepared]), folder)
            except DocumentedCommandError as error:
                raise DocumentedCommandError(f"{block.location}: {command}: {error}") from None
            if prepared.startswith(("export ", "cd ")):
                setup_commands.append(prepared)  # each command has its own shell
    finally:
        sandbox.end()
    return len(block.commands())


def run_documents(paths: Sequence[Path], folder: Path) -> list[str]:
    """Run the blocks of some files and print the result of each; return a message for each block that failed."""
    blocks = [block for path in paths for block in blocks_of(path)]
    skipped = Counter(block.skipped for block in blocks if block.skipped)
    waiting: SimpleQueue[tuple[Block, list[Block]]] = SimpleQueue()
    identities: set[tuple[Path | None, tuple[str, ...]]] = set()
    for block in (candidate for candidate in blocks if candidate.info == "sh"):
        files = [other for other in blocks if other.file and other.path == block.path and other.line < block.line]
        identity = (block.path if files else None, tuple(block.commands()))
        if identity not in identities:
            identities.add(identity)
            waiting.put((block, files))
    began = time.monotonic()
    originals, question_id = make_originals(folder)
    sandboxes = [Sandbox(Path(tempfile.mkdtemp(dir=folder)), originals, question_id) for _ in range(BLOCKS_AT_A_TIME)]
    with ThreadPoolExecutor(BLOCKS_AT_A_TIME) as threads:
        futures = [threads.submit(_run_waiting, waiting, sandbox) for sandbox in sandboxes]
        try:
            results = [future.result() for future in as_completed(futures)]
        except BaseException:  # Ctrl-C, or a server that did not start: the other threads end now, not with the queue
            with suppress(Empty):
                while True:
                    waiting.get_nowait()
            for sandbox in sandboxes:
                sandbox.end()
            raise
    failures = [failure for _, messages in results for failure in messages]
    count = sum(commands for commands, _ in results)
    skips = "; ".join(f"{number} blocks: {REASONS[reason]}" for reason, number in sorted(skipped.items()))
    seconds = time.monotonic() - began
    _say(f"{count} commands ran in {seconds:.0f} s, {len(failures)} blocks failed. Not run: {skips or 'none'}")
    return failures


def _run_waiting(waiting: SimpleQueue[tuple[Block, list[Block]]], sandbox: Sandbox) -> tuple[int, list[str]]:
    """Run blocks until none waits, with a reader and a backend of the sandbox's own.

    Returns the number of commands that ran, and a message for each block that failed.
    """
    count = 0
    failures: list[str] = []
    folder, data = sandbox.folder, str(sandbox.folder / "bm25")
    with (
        _server(folder, "memarena.readers.extractive_server") as reader,
        _server(folder, "memarena_backend_bm25", "--listen", "127.0.0.1:0", "--data-dir", data) as backend,
    ):
        sandbox.use(f"http://{reader}/v1", backend)
        while True:
            try:
                block, files = waiting.get_nowait()
            except Empty:
                return count, failures
            start = time.monotonic()
            try:
                commands = run_block(block, sandbox, files)
            except DocumentedCommandError as error:
                failures.append(str(error))
                _say(f"FAILED {error}")
            else:
                count += commands
                _say(f"{block.location}: {commands} commands in {time.monotonic() - start:.1f} s")


def main(arguments: Sequence[str]) -> int:
    """Run the blocks of the given files, or of all; 1 if a command fails."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            return 1 if run_documents([Path(name) for name in arguments] or documents(), Path(folder)) else 0
    except DocumentedCommandError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
