"""Tests named configurations and flags: chosen by name, checked by field, merged so that flags override."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import typer.testing
from memarena.cli.main import app
from memarena.cli.run import listing
from memarena.cli.run_config import run_settings
from memarena.cli.run_flags import RunFlags
from memarena.configs import named_configurations, read_file, read_named
from memarena.execution.backends.manifests import ContainerBackend, choose_backend
from memarena.execution.errors import RunError
from memarena.execution.planning.parsing import parse_config

DATA = Path("data")
NAMES = [configuration.name for configuration in named_configurations()]


def flags_of(name: str | None = None, *, edge: bool = False, resume: bool = False, **settings: object) -> RunFlags:
    return RunFlags(name=name, edge=edge, resume=resume, settings=settings)


def flags(**settings: Any) -> RunFlags:
    return flags_of(dataset=DATA, reader="extractive", **settings)


# ------------------------------------------------------------------ the files


@pytest.mark.parametrize("name", NAMES)
def test_a_file_names_backends_that_exist(name: str) -> None:
    configuration = read_named(name)
    assert configuration.title
    assert configuration.paper
    values = {"dataset": ".", "readers": [{"spec": "extractive"}], **configuration.run}
    config = parse_config(values, name)
    chosen = {choose_backend(text).name for text in config.backends}
    named_backends = {
        *config.options,
        *config.settings,
        *config.prompt_styles,
        *config.access_markers,
        *config.whole_corpus,
    }
    assert named_backends <= chosen


def test_the_list_says_what_each_is_used_for_and_needs() -> None:
    result = typer.testing.CliRunner().invoke(app, ["run", "--list"])
    assert result.exit_code == 0
    assert result.output.strip() == listing().strip()
    block = result.output[result.output.index("dense-and-rerank\n") :].splitlines()[:4]
    assert block[0] == "dense-and-rerank"
    assert block[2] == "  memarena reproduce: d6-ablation-sweep, p1c-rag"
    assert block[3] == "  needs: --embedder, --reranker"
    assert [line for line in result.output.splitlines() if not line.startswith(" ")] == NAMES


# ------------------------------------------------------------------ names and files


def test_a_name_becomes_the_run_with_its_name_and_hash() -> None:
    config, named_configuration = run_settings(flags(name="distractors"))
    assert config is not None
    assert named_configuration is not None
    assert config.backends == ("oracle", "recent=oracle")
    assert config.options["recent"]["distractors"] == "recent"
    assert config.seeds == ("s2", "s3", "s4")
    raw = files("memarena.configs").joinpath("distractors.toml").read_bytes()
    assert (named_configuration.name, named_configuration.sha256) == ("distractors", hashlib.sha256(raw).hexdigest())


def test_flags_win_and_entries_of_maps_are_overridden_one_by_one() -> None:
    config, _ = run_settings(
        flags(
            name="distractors",
            seeds="s1",
            option=["recent.budget_tokens=1024", "oracle.policy=on"],
            prompt_style=["json_context", "oracle=text_sessions"],
            edge=True,
            evidence=False,
        )
    )
    assert config is not None
    assert config.seeds == ("s1",)
    assert config.options == {
        "recent": {"distractors": "recent", "budget_tokens": "1024"},
        "oracle": {"policy": "on"},
    }
    assert (config.prompt_style, config.prompt_styles) == ("json_context", {"oracle": "text_sessions"})
    assert (config.max_context_tokens, config.max_answer_tokens) == (512, 64)
    assert config.evidence is False


def test_models_that_a_configuration_needs_are_asked_for() -> None:
    with pytest.raises(RunError, match=r"^dense-and-rerank: needs --embedder: embedded, or .*bge-m3"):
        run_settings(flags(name="dense-and-rerank"))
    with pytest.raises(RunError, match="needs --reranker: the URL"):
        run_settings(flags(name="dense-and-rerank", embedder="embedded"))
    chosen, _ = run_settings(flags(name="dense-and-rerank", backend="bm25_k5=bm25", option=["bm25_k5.k=4"]))
    assert chosen is not None, "other memories may need less"
    config, _ = run_settings(
        flags(name="dense-and-rerank", embedder="embedded", reranker="http://x/v1", reranker_model="m")
    )
    assert config is not None
    assert config.reranker is not None
    assert config.reranker.model == "m"


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(RunError, match=r"^distractor: no configuration of this name.*distractors-random"):
        run_settings(flags(name="distractor"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('title = "x"\n[run]\ncolour = "blue"', "run: colour: "),
        ('title = "x"\n[run]\nlimit = "many"', "run: limit: "),
        ('title = "x"\n[run]\nbackends = "bm25"', "run: backends: "),
        ('title = "x"\n[run.options.bm25]\nk = 5', "run: options.bm25.k: "),
        ('title = "x"', "run: missing"),
        ('title = "x"\nneeds = ["patience"]\n[run]', "needs.0: "),
        ('title = "x"\nflavour = "y"\n[run]', "flavour: "),
        ("title = 3\n[run]", "title: "),
        ("title = ", "not valid TOML"),
    ],
)
def test_a_field_at_fault_is_named_with_its_file(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(RunError) as caught:
        run_settings(flags_of(name=str(path)))
    assert str(caught.value).startswith(f"{path}: {expected}")


def test_a_file_of_ones_own_may_hold_everything_and_its_data_set_counts_from_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'title = "mine"\n[run]\ndataset = "worlds/a"\nbackends = ["bm25"]\nreaders = [{ spec = "embedded" }]\n'
    )
    config, named_configuration = run_settings(flags_of(name=str(path)))
    assert config is not None
    assert named_configuration is not None
    assert config.dataset == tmp_path / "worlds" / "a"
    assert named_configuration.name == str(path)
    again, _ = run_settings(flags_of(name=str(path), dataset=DATA, model="tiny"))
    assert again is not None
    assert again.dataset == DATA
    assert [(reader.spec, reader.model) for reader in again.readers] == [("embedded", "tiny")]


def test_a_file_in_yaml_holds_the_fields_alone(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("dataset: worlds/a\nbackends: [bm25, vanilla]\nreaders:\n  - spec: embedded\n")
    config, _ = run_settings(flags_of(name=str(path), limit=3))
    assert config is not None
    assert config.dataset == tmp_path / "worlds" / "a"
    assert (config.backends, config.limit) == (("bm25", "vanilla"), 3)


@pytest.mark.parametrize("text", ["[", "just words", "- a list", "dataset: x\nbackends: []"])
def test_a_file_that_is_no_configuration_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(text)
    with pytest.raises(RunError) as caught:
        read_file(path)
    assert str(caught.value).startswith(str(path))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot be read"):
        read_file(tmp_path / "none.yaml")


# ------------------------------------------------------------------ flags alone


def test_nothing_given_beside_resume_leaves_everything_to_the_log() -> None:
    assert run_settings(flags_of(resume=True)) == (None, None)
    with pytest.raises(RunError, match="--backend: missing; with --dataset, --resume needs all settings"):
        run_settings(flags_of(resume=True, dataset=DATA))


@pytest.mark.parametrize(
    ("given", "flag"),
    [
        ({"evidence": False}, "--no-evidence"),
        ({"keep_texts": True}, "--keep-texts"),
        ({"edge": True}, "--edge"),
        ({"limit": 3}, "--limit"),
        ({"floor_samples": 0}, "--floor-samples"),
        ({"resume": True, "name": "x"}, None),
    ],
)
def test_flags_that_decide_are_told_from_those_that_do_not(given: dict[str, Any], flag: str | None) -> None:
    assert flags_of(**given).deciding() == ([flag] if flag else [])


def test_defaults_are_those_of_the_configuration() -> None:
    """A flag that was not given says nothing: the record alone knows what holds then."""
    config, named_configuration = run_settings(flags(backend="bm25"))
    assert named_configuration is None
    expected = parse_config({"dataset": DATA, "backends": ["bm25"], "readers": [{"spec": "extractive"}]}, "test")
    assert config == expected


def test_a_zero_is_a_value() -> None:
    config, _ = run_settings(flags(backend="bm25", floor_samples=0, order_seed=0, idle_s=0.0))
    assert config is not None
    assert config.floor_samples == 0


def test_settings_stand_in_the_log_of_a_run() -> None:
    config, _ = run_settings(flags(backend="dense=bm25", setting=["dense.BM25_VECTORS=on"]))
    assert config is not None
    assert json.loads(config.model_dump_json())["settings"] == {"dense": {"BM25_VECTORS": "on"}}


# ------------------------------------------------------------------ backends


@pytest.mark.parametrize(
    ("text", "name", "image", "args"),
    [
        ("image:memarena-backend-bm25", "bm25", "memarena-backend-bm25", ()),
        ("image:memarena-backend-bm25:1.2", "bm25", "memarena-backend-bm25:1.2", ()),
        ("mine=image:localhost:5000/team/memory@sha256:abc", "mine", "localhost:5000/team/memory@sha256:abc", ()),
        (
            "oracle=image:memarena-backend-vanilla-oracle --variant oracle",
            "oracle",
            "memarena-backend-vanilla-oracle",
            ("--variant", "oracle"),
        ),
    ],
)
def test_an_image_is_a_backend(text: str, name: str, image: str, args: tuple[str, ...]) -> None:
    assert choose_backend(text) == ContainerBackend(name=name, image=image, args=args)


@pytest.mark.parametrize("text", ["image:", "image: --variant oracle", "image:x 'y", "image:UPPER"])
def test_what_is_no_image_is_said(text: str) -> None:
    with pytest.raises(RunError, match="expected image:REFERENCE"):
        choose_backend(text)


def test_one_backend_can_take_part_under_several_names() -> None:
    first, second = choose_backend("bm25"), choose_backend("again=bm25")
    assert (first.name, second.name) == ("bm25", "again")
    assert first.model_copy(update={"name": "again"}) == second
