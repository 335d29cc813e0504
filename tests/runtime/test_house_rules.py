"""Rules of the house that no linter knows (docs/architecture.md)."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
AGUI_WORD = re.compile(
    r"(?:thread|run|message|toolCall|request)Id|(?:RUN(?!_DIR)|TEXT_MESSAGE|TOOL_CALL|STATE|REASONING)_[A-Z_]+"
)
# The live task, the Celery task, the edges (sockets, HTTP, hints, a stop that must come to its end), who counts, and
# gates that must not let through what they broke on.
CATCH_ALL = {
    "agents/live/run.py": 1,
    "agents/runtime/evolution/gates.py": 1,
    "agents/runtime/metrics.py": 1,
    "agents/tasks.py": 1,
    "workbench/api.py": 1,
    "workbench/consumers.py": 1,
    "workbench/hearing.py": 2,
    "workbench/serve.py": 1,
}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for room in ("agents", "artifacts", "workbench"):
        for path in sorted((ROOT / room).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def test_the_words_of_ag_ui_stand_in_protocols_agui_and_nowhere_else() -> None:
    found = [
        f"{name}:{node.lineno} {node.value}"
        for name, tree in modules()
        if not name.startswith("agents/protocols/agui/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and AGUI_WORD.fullmatch(node.value)
    ]
    assert found == []


def test_the_runtime_stands_on_the_standard_library_and_itself() -> None:
    found = []
    for name, tree in modules():
        if name.startswith("agents/runtime/"):
            for node in ast.walk(tree):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom):
                    names = [node.module or ""]
                found += [
                    f"{name}: {imported}"
                    for imported in names
                    if imported.partition(".")[0] not in sys.stdlib_module_names
                    and imported != "agents.runtime"
                    and not imported.startswith("agents.runtime.")
                ]
    assert found == []


def test_everything_is_caught_only_where_the_house_says_so() -> None:
    found: dict[str, int] = {}
    for name, tree in modules():
        for node in ast.walk(tree):
            caught = node.type if isinstance(node, ast.ExceptHandler) else None
            if isinstance(node, ast.ExceptHandler) and (
                caught is None or (isinstance(caught, ast.Name) and caught.id == "Exception")
            ):
                found[name] = found.get(name, 0) + 1
    assert found == CATCH_ALL


def test_what_is_caught_whatever_it_is_goes_on_its_way() -> None:
    """`except BaseException` is for tidying up: it must end in a bare `raise`."""
    found = [
        f"{name}:{node.lineno}"
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler)
        and isinstance(node.type, ast.Name)
        and node.type.id == "BaseException"
        and not (isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None)
    ]
    assert found == []


def test_no_file_is_too_long_and_no_function_either() -> None:
    found = [
        f"{name} {getattr(node, 'name', '')}"
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (node.end_lineno or 0) - node.lineno >= 60
    ]
    found += [name for name, _ in modules() if len((ROOT / name).read_text(encoding="utf-8").splitlines()) > 600]
    assert found == []


def test_every_exception_from_a_rule_gives_its_reason_in_the_line() -> None:
    said = re.compile(r"#\s*(?:noqa: [A-Z0-9, ]+|type: ignore\[[^\]]+\])(?P<reason>.*)")
    found = [
        f"{name}:{number}"
        for name, _ in modules()
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1)
        if (match := said.search(line)) and len(match["reason"].strip(" -#")) < 4
    ]
    assert found == []
