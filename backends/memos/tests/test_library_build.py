"""The library's wheel without its dependencies: only what is meant to go goes."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

BUILD = Path(__file__).parent.parent / "library" / "without_dependencies.py"
INFO = "memoryos-2.0.33.dist-info"
PUBLISHED = {
    "memos/__init__.py": "__version__ = '2.0.33'\n",
    f"{INFO}/METADATA": "Name: MemoryOS\nVersion: 2.0.33\nRequires-Dist: openai (<2)\nProvides-Extra: all\n\nBody: b\n",
    f"{INFO}/RECORD": "memos/__init__.py,sha256=x,1\n",
}


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("without_dependencies", BUILD)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    published = tmp_path / "published.whl"
    with zipfile.ZipFile(published, "w") as wheel:
        for name, content in PUBLISHED.items():
            wheel.writestr(name, content)
    monkeypatch.setattr(module, "_fetched", lambda _: published)
    return module


def test_dependencies_go_and_the_rest_stays(build: ModuleType, tmp_path: Path) -> None:
    name = build.build_wheel(str(tmp_path))
    with zipfile.ZipFile(tmp_path / name) as wheel:
        files = {each: wheel.read(each).decode() for each in wheel.namelist()}
    info = INFO.replace("2.0.33", "2.0.33+without.dependencies")
    assert files["memos/__init__.py"] == PUBLISHED["memos/__init__.py"]
    assert files[f"{info}/METADATA"] == "Name: MemoryOS\nVersion: 2.0.33+without.dependencies\n\nBody: b\n"
    recorded = [line.partition(",")[0] for line in files[f"{info}/RECORD"].splitlines()]
    assert sorted(recorded) == sorted(files)
