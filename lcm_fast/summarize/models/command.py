"""A program as a model: the prompt on its standard input, the answer on its standard output.

The prompt is UTF-8 text: the system prompt, a blank line, the user's part. No shell reads the
command. Whatever the program does, it is over at the timeout, with all that it started.
"""

from __future__ import annotations

import atexit
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

from ...errors import ConfigError, SummarizerContentError, SummarizerOutageError
from .answers import read_answer
from .endpoint import system_prompt
from .protocol import ModelAnswer, ModelCall

__all__ = ["CommandModel"]

_LARGEST_OUTPUT_BYTES = 4 * 1024 * 1024
_KEPT_ERROR_BYTES = 4096
_LONGEST_ERROR_LINE = 300
_PIECE_BYTES = 65536
_HINT = "compaction tries again later"

_running: set[subprocess.Popen[bytes]] = set()


class CommandModel:
    """A program that summarises.

    Parameters
    ----------
    command
        The program and its arguments; a text is split as a shell would, without one.

    Raises
    ------
    ConfigError
        The command is empty or has an open quote, or there is no such program.

    Threading: `complete` may be called from several threads at once; each call is a process.
    """

    def __init__(self, command: str | Sequence[str]) -> None:
        self._argv = _arguments(command)
        self.name = f"command/{Path(self._argv[0]).name}"

    def complete(self, call: ModelCall) -> ModelAnswer:
        """Return what the program wrote; blocking, ends within the call's timeout.

        Raises
        ------
        SummarizerOutageError
            The program could not be started, took too long, or ended with another status than 0.
        SummarizerContentError
            It wrote nothing usable, or more than 4 MiB.
        """
        prompt = f"{system_prompt(call)}\n\n{call.user}\n"
        run = _Run(self.name, self._argv, prompt.encode("utf-8", "replace"), call.timeout_s)
        return read_answer(run.output().decode("utf-8", "replace"), self.name)


def _arguments(command: str | Sequence[str]) -> list[str]:
    try:
        argv = shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError as error:
        raise ConfigError(f"the summariser's command {command!r}: {error}") from error
    if not argv:
        raise ConfigError("the summariser's command is empty")
    if shutil.which(argv[0]) is None:
        raise ConfigError(
            f"the summariser's command {argv[0]!r} is no program that can be run",
            hint="give its path, or the name of a program in PATH; no shell reads the command",
        )
    return argv


class _Run:
    """One process, from start to end."""

    def __init__(self, name: str, argv: list[str], prompt: bytes, timeout_s: float) -> None:
        self._name = name
        self._argv = argv
        self._unsent = memoryview(prompt)
        self._timeout_s = timeout_s
        self._deadline = time.monotonic() + timeout_s
        self._output = bytearray()
        self._complaints = bytearray()

    def output(self) -> bytes:
        """Run the program, and return what it wrote."""
        try:
            process = subprocess.Popen(
                self._argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise SummarizerOutageError(
                f"{self._name}: cannot be started: {error}", hint=_HINT
            ) from error
        _running.add(process)
        try:
            self._exchange(process)
            status = process.wait(self._seconds_left())
        except subprocess.TimeoutExpired:
            raise self._too_late() from None
        finally:
            _end(process)
        if status != 0:
            raise SummarizerOutageError(
                f"{self._name}: {_ending(status)}: {self._last_complaint()}", hint=_HINT
            )
        return bytes(self._output)

    def _exchange(self, process: subprocess.Popen[bytes]) -> None:
        """Write the prompt and read both outputs, all at once, until both are at their end."""
        pipes = (process.stdin, process.stdout, process.stderr)
        stdin, stdout, stderr = cast("tuple[IO[bytes], IO[bytes], IO[bytes]]", pipes)
        os.set_blocking(stdin.fileno(), False)
        outputs = {stdout, stderr}
        with selectors.DefaultSelector() as selector:
            selector.register(stdin, selectors.EVENT_WRITE, (stdin, self._write))
            selector.register(stdout, selectors.EVENT_READ, (stdout, self._read))
            selector.register(stderr, selectors.EVENT_READ, (stderr, self._read_complaint))
            while outputs:
                ready = selector.select(self._seconds_left())
                if not self._seconds_left():
                    raise self._too_late()
                for key, _ in ready:
                    stream, step = key.data
                    if not step(key.fd):
                        selector.unregister(stream)
                        stream.close()
                        outputs.discard(stream)

    def _write(self, stream: int) -> bool:
        try:
            written = os.write(stream, self._unsent[:_PIECE_BYTES])
        except BrokenPipeError:
            return False  # it has read enough
        self._unsent = self._unsent[written:]
        return bool(self._unsent)

    def _read(self, stream: int) -> bool:
        piece = os.read(stream, _PIECE_BYTES)
        self._output += piece
        if len(self._output) > _LARGEST_OUTPUT_BYTES:
            raise SummarizerContentError(
                f"{self._name}: wrote more than {_LARGEST_OUTPUT_BYTES:,} bytes", code="too_large"
            )
        return bool(piece)

    def _read_complaint(self, stream: int) -> bool:
        piece = os.read(stream, _PIECE_BYTES)
        self._complaints += piece
        del self._complaints[:-_KEPT_ERROR_BYTES]
        return bool(piece)

    def _seconds_left(self) -> float:
        return max(0.0, self._deadline - time.monotonic())

    def _too_late(self) -> SummarizerOutageError:
        return SummarizerOutageError(
            f"{self._name}: gave no answer in {self._timeout_s:g} s", hint=_HINT
        )

    def _last_complaint(self) -> str:
        lines = self._complaints.decode("utf-8", "replace").strip().splitlines()
        return lines[-1].strip()[:_LONGEST_ERROR_LINE] if lines else "nothing on standard error"


@atexit.register
def _end_all() -> None:
    """Leave no program behind whose call was given up by an interrupt."""
    for process in list(_running):
        _kill(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that has not ended, with its group, and let go of it."""
    _kill(process)
    _running.discard(process)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    process.wait()


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _ending(status: int) -> str:
    return f"killed by signal {-status}" if status < 0 else f"ended with status {status}"
