"""The command line: parses, calls the engine, prints. Holds no policy and no SQL."""

from .app import cli, main

__all__ = ["cli", "main"]
