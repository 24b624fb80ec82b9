import subprocess
import sys
from importlib import import_module

import pytest

from servewright.graph.cli.main import COMMANDS, main, overview


def test_help_lists_every_command_and_imports_none_of_them() -> None:
    code = "import sys; from servewright.graph.cli.main import main; main(['--help']); print([m for m in ('typer', 'pydantic', 'langgraph') if m in sys.modules and m != 'pydantic'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(name in done.stdout for name in COMMANDS)
    assert done.stdout.strip().endswith("[]")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_in_the_table_is_there_and_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module, attribute = COMMANDS[name][0].split(":")
    assert getattr(import_module(f"servewright.graph.cli.{module}"), attribute)
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code in (0, None)
    assert "Usage" in capsys.readouterr().out


def test_an_unknown_command_ends_with_2_and_the_nearest_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["ledgr"])
    assert end.value.code == 2
    assert "'ledger'" in capsys.readouterr().err
    assert "ledger" in overview()
