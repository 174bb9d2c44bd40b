"""The flags of ``memarena run``: what a user gave, None where nothing was given."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import typer

_Text = str | None
_Many = list[str] | None
_Count = int | None
_Switch = bool | None


@dataclass(frozen=True, kw_only=True)
class RunFlags:
    """Flags as they were given. Everything below ``resume`` decides what a run does, and overrides a configuration."""

    name: Annotated[
        _Text,
        typer.Argument(metavar="NAME|FILE", help="A named configuration (see --list), or a file of one: TOML or YAML."),
    ] = None
    list_all: Annotated[bool, typer.Option("--list", help="List the named configurations and exit.")] = False
    out: Annotated[
        Path | None, typer.Option(help="New folder of the run: its log, the backends' data, their output. Required.")
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out; it keeps its settings.")] = (
        False
    )
    tls_ca: Annotated[
        Path | None, typer.Option(help="PEM file: connect to backends by TLS with these root certificates.")
    ] = None
    bearer_token_file: Annotated[Path | None, typer.Option(help="File with a bearer token for backends.")] = None

    dataset: Annotated[
        Path | None, typer.Option(help="Data set folder, as masim generate or memarena dataset import writes it.")
    ] = None
    backend: Annotated[
        _Text,
        typer.Option(
            help="Backends (the memories that are compared), separated by commas: a name, HOST:PORT, "
            "'image:REFERENCE [ARGUMENT…]' or a backend.toml; NAME= before one sets its name in the run."
        ),
    ] = None
    reader: Annotated[
        _Text,
        typer.Option(
            help="Readers (the models that answer), separated by commas: extractive (no language model), embedded (a "
            "small one on this machine's CPU), or the URL of an OpenAI-compatible API."
        ),
    ] = None
    model: Annotated[_Text, typer.Option(help="Model behind the reader's URL, where it serves several.")] = None
    reader_window: Annotated[_Count, typer.Option(help="Context window of the reader in tokens.")] = None
    no_system_role: Annotated[
        _Switch, typer.Option("--no-system-role", help="The reader's chat template has no system role.")
    ] = None
    reader_param: Annotated[
        _Many,
        typer.Option(help="KEY=JSON put into every request to the reader, e.g. 'top_k=1'; repeatable."),
    ] = None
    reader_drop: Annotated[
        _Many, typer.Option(help="Field left out of every request to the reader, e.g. seed; repeatable.")
    ] = None
    reader_concurrency: Annotated[_Count, typer.Option(help="Most requests to the reader at once; default: any.")] = (
        None
    )
    reader_requests_per_minute: Annotated[
        float | None, typer.Option(help="Most requests to the reader in a minute; waiting is part of no time.")
    ] = None
    reader_patience: Annotated[
        float | None,
        typer.Option(help="Seconds that a request waits for a busy server (429, 503); default 300."),
    ] = None
    embedder: Annotated[
        _Text, typer.Option(help="Embedding model for memories: embedded, or the URL of an OpenAI-compatible API.")
    ] = None
    embedder_model: Annotated[_Text, typer.Option(help="Model behind the embedder's URL.")] = None
    extractor: Annotated[
        _Text, typer.Option(help="URL of the model that extracts facts while ingesting; default: the reader.")
    ] = None
    extractor_model: Annotated[_Text, typer.Option(help="Model behind the extractor's URL.")] = None
    reranker: Annotated[_Text, typer.Option(help="URL of a rerank API for memories.")] = None
    reranker_model: Annotated[_Text, typer.Option(help="Model behind the reranker's URL.")] = None
    protocol: Annotated[
        _Text,
        typer.Option(help="When questions are asked: interleaved with the days (default), or end_of_horizon."),
    ] = None
    seeds: Annotated[
        _Text,
        typer.Option(
            help="Sampling seeds, separated by commas; each asks every question once more: s1 (greedy, default), "
            "s2, s3, s4 (temperature 0.3)."
        ),
    ] = None
    max_context_tokens: Annotated[
        _Count, typer.Option(help="Tokens of context that a reader may see; default 8192.")
    ] = None
    max_answer_tokens: Annotated[_Count, typer.Option(help="Tokens of an answer; default 400.")] = None
    edge: Annotated[bool, typer.Option("--edge", help="Edge budget: 512 context tokens, 64 answer tokens.")] = False
    max_items: Annotated[_Count, typer.Option(help="Items that Search may return; default: the backend's choice.")] = (
        None
    )
    prompt_style: Annotated[
        _Many,
        typer.Option(
            help="How found items stand in the prompt: as the backend prefers (backend, default), text_sessions or "
            "json_context; BACKEND=STYLE for one backend; repeatable."
        ),
    ] = None
    thinking: Annotated[
        _Text,
        typer.Option(
            "--reader-thinking",
            "--thinking",
            help="For readers that can think before they answer: default, on, off, or the tokens that they may spend "
            "on it, not counted with the answer's.",
        ),
    ] = None
    central_reading: Annotated[
        _Switch,
        typer.Option(
            "--central-reading",
            help="Let the harness ask the reader over Search's items, even where a backend has its own Answer.",
        ),
    ] = None
    option: Annotated[_Many, typer.Option(help="BACKEND.KEY=VALUE, an option of each search; repeatable.")] = None
    setting: Annotated[
        _Many,
        typer.Option(help="BACKEND.VARIABLE=VALUE, environment variable of a backend that the run starts; repeatable."),
    ] = None
    ego: Annotated[
        _Many, typer.Option(help="Only questions to the assistant of this person (ego), by id; repeatable.")
    ] = None
    family: Annotated[_Many, typer.Option(help="Only questions of this family, such as d7_qa; repeatable.")] = None
    question_ids: Annotated[Path | None, typer.Option(help="File with one instance id per line: only these.")] = None
    leave_out: Annotated[
        _Many, typer.Option(help="Id of a question that is not read, such as one that stops the run; repeatable.")
    ] = None
    limit: Annotated[_Count, typer.Option(help="At most this many questions, a random sample; default: all.")] = None
    order_seed: Annotated[
        _Count, typer.Option(help="Seed of the sample of --limit and of the order of questions; default: drawn anew.")
    ] = None
    diagnostic: Annotated[
        _Many,
        typer.Option(
            help="Name of a backend given by address or image that is a diagnostic: no competitor, may see the right "
            "evidence; repeatable."
        ),
    ] = None
    evidence: Annotated[
        _Switch,
        typer.Option(
            "--evidence/--no-evidence",
            help="Send diagnostics the evidence of each question (default); no other backend ever gets it.",
        ),
    ] = None
    access_markers: Annotated[
        _Many, typer.Option(help="Diagnostic whose evidence also says whether the asker may know it; repeatable.")
    ] = None
    whole_corpus: Annotated[
        _Many, typer.Option(help="Diagnostic that takes in everybody's sessions, not one person's; repeatable.")
    ] = None
    deadline: Annotated[
        _Many,
        typer.Option(
            help="CALL=SECONDS that a call to a backend may take; repeatable. Defaults: describe=10, ingest=600, "
            "search=30, answer=600, reset=60, health=60."
        ),
    ] = None
    budget: Annotated[
        _Many,
        typer.Option(
            help="CALL.calls=N or CALL.tokens=N: what one ingest, search or answer may spend on models; repeatable. "
            "Default: no limit."
        ),
    ] = None
    cache: Annotated[
        Path | None, typer.Option(help="Folder of model replies to reuse; the run then times and meters nothing.")
    ] = None
    keep_texts: Annotated[
        _Switch,
        typer.Option(
            "--keep-texts/--no-keep-texts", help="Keep prompts and outputs in the log (default), or only their hashes."
        ),
    ] = None
    id_key: Annotated[
        _Text, typer.Option(help="64 hex digits: fixed opaque ids and tokens, for byte-identical requests.")
    ] = None
    gateway_host: Annotated[
        _Text,
        typer.Option(
            help="Address on which the gateway, through which backends reach models, listens; default 127.0.0.1, which "
            "backends on other machines cannot reach."
        ),
    ] = None
    gateway_url: Annotated[_Text, typer.Option(help="How backends reach the gateway, e.g. http://harness:8100/v1.")] = (
        None
    )
    gateway_port: Annotated[_Count, typer.Option(help="Port of the gateway; 0 (default): the system chooses.")] = None
    floor_samples: Annotated[
        _Count,
        typer.Option(
            help="Calls to a backend and a reader that do nothing, which show what the harness itself takes (the "
            "floor); default 200, 0: none."
        ),
    ] = None
    deletions: Annotated[
        _Count,
        typer.Option(
            help="Sessions, people and facts of each ego that a backend with FORGET is asked to forget after the "
            "last question, and that are looked for again; default 0."
        ),
    ] = None
    warm_up: Annotated[
        _Count,
        typer.Option(help="Requests to each reader before anything is timed, of every prompt length; default 0."),
    ] = None
    meter: Annotated[
        _Text,
        typer.Option(
            help="Meters of power and memory, separated by commas: auto (default: nvml, hwmon and procfs where they "
            "are), none, nvml[:GPU], hwmon, procfs, replay:FILE."
        ),
    ] = None
    system_rail: Annotated[_Text, typer.Option(help="Power channel of the whole machine, as hwmon names it.")] = None
    idle_s: Annotated[
        float | None,
        typer.Option(
            help="Seconds of rest before the first question and after the last; default 0. Energy above idle needs 120."
        ),
    ] = None
    after_crash: Annotated[
        _Text,
        typer.Option(
            help="After a backend crashed: go on where it proves that it still holds its days (verify, default), or "
            "give it all days again (fresh)."
        ),
    ] = None
    backend_restarts: Annotated[
        _Count, typer.Option(help="How often a backend that ended is started again; default 10.")
    ] = None
    isolation: Annotated[
        _Text,
        typer.Option(
            help="How far backends are kept from the data set: user (a process that sees neither it nor other "
            "processes), none, container (images alone); auto (default): user where this machine offers it."
        ),
    ] = None
    backend_memory: Annotated[
        _Text, typer.Option(help="Memory limit of a backend's container, e.g. 2g; default 4g.")
    ] = None
    backend_cpus: Annotated[
        float | None, typer.Option(help="CPU limit of a backend's container, e.g. 1.5; default: all CPUs.")
    ] = None
    backend_pids: Annotated[
        _Count, typer.Option(help="Limit of processes and threads of a backend's container; default 1024.")
    ] = None

    def deciding(self) -> list[str]:
        """Flags that were given and that decide what the run does, as a user writes them."""
        found = []
        for field in fields(self):
            value = getattr(self, field.name)
            flag = field.name.replace("_", "-")
            if field.name in _BESIDE or value is field.default:
                continue
            found.append(f"--no-{flag}" if value is False else f"--{flag}")
        return found


_BESIDE = {"name", "list_all", "out", "resume", "tls_ca", "bearer_token_file"}
"""Fields that do not change what a run asks, and so may be given with --resume."""
