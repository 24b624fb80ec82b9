import re
import tomllib
from importlib.metadata import requires
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = ("tools", "sandboxes", "mcp_servers", "graph", "prompts", "evals")
ORDER = ["contract", "knobs", "traffic simulator telemetry judgement", "sandboxes", "serving", "ledger", "experiment", "search report", "mcp_servers", "graph", "evals"]
"""Imports run from the right to the left, and never between those of one place."""
RANK = {name: rank for rank, names in enumerate(ORDER) for name in names.split()}
IMPORT = re.compile(r"^\s*(?:from\s+(\.+[\w.]*|servewright[\w.]*)\s+import\s+([\w, ]+)|import\s+(servewright[\w.]*))", re.MULTILINE)


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_every_package_is_listed() -> None:
    found = {"servewright." + ".".join(init.parent.relative_to(ROOT).parts) for folder in FOLDERS for init in (ROOT / folder).rglob("__init__.py")}
    assert found == set(project()["tool"]["setuptools"]["packages"])


def test_every_folder_with_code_is_a_package() -> None:
    bare = {str(file.parent.relative_to(ROOT)) for folder in FOLDERS for file in (ROOT / folder).rglob("*.py") if not (file.parent / "__init__.py").exists()}
    assert not {path for path in bare if not path.startswith("evals/tasks")}


def place(parts: tuple[str, ...]) -> str | None:
    """The part of the project that a module belongs to: `contract`, `graph`, ..."""
    head = parts[1] if parts[0] == "tools" and len(parts) > 1 else parts[0]
    return head if head in RANK else None


def imports(file: Path) -> list[tuple[str, ...]]:
    package = file.relative_to(ROOT).parts[:-1]
    found = []
    for relative, names, absolute in IMPORT.findall(file.read_text()):
        name = relative or absolute
        if name.startswith("."):
            dots = len(name) - len(name.lstrip("."))
            base = package[: len(package) - dots + 1]
            rest = tuple(part for part in name.lstrip(".").split(".") if part)
            targets = [base + rest + (() if rest else (first.strip(),)) for first in names.split(",")] if not rest or base == () else [base + rest]
        else:
            targets = [tuple(name.split(".")[1:])]
        found += [target for target in targets if target]
    return found


def test_imports_run_one_way() -> None:
    wrong = []
    for folder in FOLDERS:
        for file in (ROOT / folder).rglob("*.py"):
            here = place(file.relative_to(ROOT).parts[:-1])
            for target in imports(file):
                there = place(target)
                if here and there and here != there and RANK[there] >= RANK[here]:
                    wrong.append(f"{file.relative_to(ROOT)} imports {'.'.join(target)}")
    assert not wrong, "\n".join(wrong)


def test_the_import_test_sees_imports() -> None:
    assert ("tools", "contract", "errors") in imports(ROOT / "graph/cli/main.py")


def test_engines_do_not_come_in_by_a_plain_install() -> None:
    plain = [line for line in requires("servewright") or [] if "extra ==" not in line]
    assert plain
    assert not [line for line in plain if re.match(r"(torch|vllm|sglang)\b", line)]


def test_every_dependency_is_pinned_and_explained() -> None:
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line}
    text = (ROOT / "pyproject.toml").read_text()
    listed = project()["project"]["dependencies"] + [line for lines in project()["project"]["optional-dependencies"].values() for line in lines]
    for line in listed:
        name = re.split(r"[<>=;\[ ]", line)[0].lower().replace("_", "-")
        assert name in pinned, f"{name} has no pin in constraints.txt"
        assert re.search(rf'"{re.escape(line)}",?\s+# \w', text), f"{name} has no reason beside it"
