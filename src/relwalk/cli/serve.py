"""`relwalk serve`: runs in the browser and over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from relwalk.cli import console, options
from relwalk.errors import RelWalkError


def serve(
    run: Annotated[list[Path], typer.Argument(metavar="RUN...", help="The folders of one or more runs.")],
    host: Annotated[str, typer.Option(help="Where to listen; other machines need a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for any that is free.")] = 8765,
    token: Annotated[
        str | None, typer.Option(envvar="RELWALK_TOKEN", help="A secret that every request must know.")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Swap a run in when it was trained anew.")] = False,
    index: Annotated[
        bool, typer.Option("--index", help="Look for answers in an index over the keys: for a million entities.")
    ] = False,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    device: options.Device = "cpu",
    anyway: options.Anyway = False,
) -> None:
    """Look at runs in the browser, judge what they predict, and ask them over HTTP."""
    try:
        from relwalk.serve import server
    except ImportError as error:
        if error.name is not None and error.name.startswith("relwalk"):
            raise
        raise RelWalkError(
            f"the service needs FastAPI, uvicorn and prometheus-client; one cannot be imported here ({error}). "
            "Install them: pip install 'relwalk[serve]'"
        ) from error
    server.serve(
        run,
        host=host,
        port=port,
        token=token,
        watch=watch,
        open_page=open_page,
        device=device,
        anyway=anyway,
        index=index,
        tell=console.note,
    )
