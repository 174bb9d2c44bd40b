"""Runs the command blocks of the documentation as they stand: python scripts/documented_commands.py [FILE...].

A block of commands is a fence marked ``sh``. Its commands are run in order, in an empty folder of the block's own, with
the programs of this environment, and must end with exit code 0. What readers put in for themselves is there under the
name that the documentation uses, unless the block makes it: ``DIR`` and ``WORLD`` are data sets; ``RUN``, ``RUN_A`` and
``RUN_B`` finished runs; ``FILE`` a file of LoCoMo's form; ``my-backend`` a backend. ``URL`` stands for the address of a
reader, ``HOST:PORT`` for that of a backend, ``ID`` for a question, ``PORT`` and ``127.0.0.1:50051`` for free ports.

A command that serves until it is stopped has to print its address and to end well on Ctrl-C; one that ends with ``&``
runs until the block ends. A block that was run before is not run again. A fence marked ``LANGUAGE file=NAME`` is a file
that later blocks of its document find. A fence marked ``sh skip=REASON`` (one of :data:`REASONS`) is not run, nor is a
line with an ellipsis before its comment, which shows the form of a command.
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
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

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
_FENCE = re.compile(r"^(?P<indent> *)```(?P<mark>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```\s*$", re.S | re.M)
_SERVES = re.compile(r"\bmemarena (?:view|annotate) (?!.*--(?:export|import))|--listen\b")
_ADDRESS = re.compile(r"http://\S+|listening on \S+")
LIMIT_S = 240.0
STOP_S = 30.0
SERVES_S = 0.2
"""How long a command that said where it serves has to be there."""
FAMILIES = ("d3_confabulation", "d4_permission", "d7_qa")
"""One question of each is asked; an answer of the embedded LLM takes seconds."""
GRID = """[[worlds]]
dataset = "DIR"
[[memories]]
name = "bm25"
[[memories]]
name = "oracle"
[[readers]]
spec = "extractive"
"""
"""The file that docs/sweeps.md sends off, without what needs a GPU."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fence: where it stands, its mark (``sh``, ``sh skip=gpu``, ``toml`` or nothing), its lines, not indented."""

    path: Path
    line: int
    mark: str
    lines: tuple[str, ...]

    @property
    def location(self) -> str:
        """File and line, as an editor takes them."""
        return f"{self.path}:{self.line}"

    @property
    def file(self) -> str | None:
        """The name of the file that the block holds; None for a block that is none."""
        match = re.fullmatch(r"\w+ file=(\S+)", self.mark)
        return match[1] if match else None

    @property
    def skipped(self) -> str | None:
        """Why the block is not run; None for one that is."""
        match = re.fullmatch(r"sh skip=(\w+)", self.mark)
        return match[1] if match else None

    def commands(self) -> list[str]:
        """Commands in order: lines that end with a backslash joined, comments and forms left out."""
        joined = "\n".join(self.lines).replace("\\\n", " ")
        bare = [re.sub(r"(?:^|\s+)# .*$", "", line).strip() for line in joined.splitlines()]
        return [line for line in bare if line and "…" not in line and not line.startswith("#")]


class DocumentedCommandError(Exception):
    """A block is not marked as it must be, or a command does not do what is said; one line, then what it printed."""


def documents() -> list[Path]:
    """Files of the repository whose commands are run, relative to its root."""
    tracked = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return [Path(name) for name in tracked if not name.startswith(("docs/adr/", "docs/experiments/", "tests/"))]


def blocks_of(path: Path) -> list[Block]:
    """All fences of a file. Raises :class:`DocumentedCommandError` for an unknown mark."""
    text = (ROOT / path).read_text(encoding="utf-8")
    blocks = []
    for match in _FENCE.finditer(text):
        lines = tuple(line.removeprefix(match["indent"]) for line in match["body"].splitlines())
        block = Block(path, text[: match.start()].count("\n") + 1, match["mark"].strip(), lines)
        _check(block)
        blocks.append(block)
    return blocks


def _check(block: Block) -> None:
    if block.mark.startswith("sh ") and block.file is None and block.skipped not in REASONS:
        known = ", ".join(REASONS)
        raise DocumentedCommandError(f"{block.location}: {block.mark!r}: expected sh, or sh skip=REASON, of {known}")
    first = next((line.split() for line in block.lines if line.split()), [""])
    if not block.mark and first[0] in PROGRAMS:
        raise DocumentedCommandError(f"{block.location}: commands are in a fence marked sh, or sh skip=REASON")


class Shell:
    """Runs commands. ``folder`` takes what they say."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "BROWSER": "true",  # what --open opens
        }
        self._children: list[subprocess.Popen[bytes]] = []

    def end(self) -> None:
        """Kill whatever the commands so far left running."""
        for child in self._children:
            _kill(child.pid)
            child.wait()
        self._children.clear()

    def call(self, command: str, folder: Path) -> None:
        """Run a command to its end. What it left behind in its process group runs until :meth:`end`.

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
        """Run a command that serves until it says where; then ``stop`` it as Ctrl-C does, or leave it for :meth:`end`.

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


class Stage(Shell):
    """Substitutes for a reader's own data: a small data set, finished runs, servers, files. Made once."""

    def __init__(self, folder: Path, reader_url: str, backend_address: str) -> None:
        super().__init__(folder)
        self._originals = folder / "kept"
        self._dataset = self._originals / "DIR"
        shutil.copytree(ROOT / "tests/data/example", self._dataset)
        ids = []
        for path in sorted((self._dataset / "eval_instances").iterdir()):
            rows = path.read_text(encoding="utf-8").splitlines(keepends=True)[: int(path.stem in FAMILIES)]
            path.write_text("".join(rows), encoding="utf-8")
            ids += [str(json.loads(row)["instance_id"]) for row in rows]
        self._substitutes = {"URL": reader_url, "HOST:PORT": backend_address, "ID": ids[0]}
        shutil.copytree(self._dataset, self._originals / "WORLD")
        answers = "".join(
            json.dumps({"instance_id": instance_id, "answer": "I don't know."}) + "\n" for instance_id in ids
        )
        (self._originals / "answers.jsonl").write_text(answers, encoding="utf-8")
        (self._originals / "grid.toml").write_text(GRID, encoding="utf-8")
        (self._originals / "FILE").write_text(json.dumps([_LOCOMO]), encoding="utf-8")
        backend = self._originals / "my-backend"
        backend.write_text('#!/bin/sh\nexec python -m memarena_backend_bm25 "$@"\n', encoding="utf-8")
        backend.chmod(0o755)
        for name, memories in (("RUN", "bm25,vanilla,oracle"), ("RUN_B", "bm25,oracle")):
            run = f"memarena run --dataset DIR --backend {memories} --reader extractive --out {name}"
            self.call(run, self._originals)
        shutil.copytree(self._originals / "RUN", self._originals / "RUN_A")

    def folder_for(self, block: Block, files: Sequence[Block]) -> Path:
        """A folder with what the block's commands name, and the files that its document showed before it."""
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
            (folder / listing.file).write_text(self.put_in("\n".join(listing.lines)) + "\n", encoding="utf-8")
            (folder / listing.file).chmod(0o755)
        return folder

    def put_in(self, command: str) -> str:
        """The command with addresses and ids in place of ``URL`` and the like."""
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
    """A server of ours as its own process; what it wrote into its address file."""
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


def run_block(block: Block, stage: Stage, files: Sequence[Block]) -> int:
    """Run a block's commands; how many. Nothing that they started is left.

    Raises:
        DocumentedCommandError: a command did not do what is said; it is named with its place.
    """
    folder = stage.folder_for(block, files)
    before: list[str] = []
    try:
        for command in block.commands():
            prepared = stage.put_in(command)
            behind = prepared.endswith("&")
            try:
                if behind or _SERVES.search(prepared):
                    stage.serve(prepared.removesuffix("&"), folder, stop=not behind)
                else:
                    stage.call("\n".join([*before, prepared]), folder)
            except DocumentedCommandError as error:
                raise DocumentedCommandError(f"{block.location}: {command}: {error}") from None
            if prepared.startswith(("export ", "cd ")):
                before.append(prepared)
    finally:
        stage.end()
    return len(block.commands())


def run_documents(paths: Sequence[Path], folder: Path) -> list[str]:
    """Run the blocks of some files and print how each went. What failed, a text for each block."""
    blocks = [block for path in paths for block in blocks_of(path)]
    failures: list[str] = []
    ran: set[tuple[Path | None, tuple[str, ...]]] = set()
    skipped = Counter(block.skipped for block in blocks if block.skipped)
    count, began = 0, time.monotonic()
    with (
        _server(folder, "memarena.readers.extractive_server") as reader,
        _server(folder, "memarena_backend_bm25", "--listen", "127.0.0.1:0", "--data-dir", str(folder / "bm25")) as bm25,
    ):
        stage = Stage(folder, f"http://{reader}/v1", bm25)
        for block in (candidate for candidate in blocks if candidate.mark == "sh"):
            files = [other for other in blocks if other.file and other.path == block.path and other.line < block.line]
            same = (block.path if files else None, tuple(block.commands()))
            if same in ran:
                continue
            ran.add(same)
            start = time.monotonic()
            try:
                commands = run_block(block, stage, files)
            except DocumentedCommandError as error:
                failures.append(str(error))
                _say(f"FAILED {error}")
            else:
                count += commands
                _say(f"{block.location}: {commands} commands in {time.monotonic() - start:.1f} s")
    skips = "; ".join(f"{number} blocks: {REASONS[reason]}" for reason, number in sorted(skipped.items()))
    seconds = time.monotonic() - began
    _say(f"{count} commands ran in {seconds:.0f} s, {len(failures)} blocks failed. Not run: {skips or 'none'}")
    return failures


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
