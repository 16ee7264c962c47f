"""An HTTP server on this machine that speaks OpenAI's and Anthropic's interfaces, and misbehaves
as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from lcm_fast.summarize import SourceItem, SummaryRequest
from lcm_fast.summarize.metering import CallRecord
from lcm_fast.summarize.models import AnthropicModel, ModelCall, OpenAIModel

KEY = "sk-a-key-that-nobody-may-see"


@dataclass(frozen=True)
class Reply:
    """What the server does with one request.

    Attributes
    ----------
    delay_s
        Seconds of silence first.
    drip_s
        Seconds between the single bytes of the body; None sends it at once.
    hangs_up
        Close the connection in place of an answer.
    """

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    delay_s: float = 0.0
    drip_s: float | None = None
    hangs_up: bool = False


def openai_reply(message: Mapping[str, Any], finish_reason: str = "stop") -> Reply:
    """A chat completion."""
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    usage = {"prompt_tokens": 120, "completion_tokens": 7, "total_tokens": 127}
    return json_reply({"model": "gpt-real", "choices": [choice], "usage": usage})


def anthropic_reply(content: list[Mapping[str, Any]], stop_reason: str = "end_turn") -> Reply:
    """A message of Anthropic's."""
    usage = {"input_tokens": 100, "cache_read_input_tokens": 20, "output_tokens": 7}
    message = {"type": "message", "role": "assistant", "content": content, "usage": usage}
    return json_reply({**message, "model": "claude-real", "stop_reason": stop_reason})


def json_reply(body: object) -> Reply:
    """A success with this body."""
    return Reply(json.dumps(body).encode())


def refusal(
    status: int, message: str, *, code: str | None = None, headers: Mapping[str, str] | None = None
) -> Reply:
    """An error in the words of either interface."""
    error = {"type": "some_error", "message": message, "code": code}
    return Reply(json.dumps({"error": error}).encode(), status, headers or {})


class SummarizeServer:
    """The server; a context manager.

    Attributes
    ----------
    replies
        One for each request, in order; the last one for all that follow.
    requests
        The bodies received.
    headers
        The names of the headers received, in lower case.
    """

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.requests: list[dict[str, Any]] = []
        self.headers: list[set[str]] = []
        self.stopping = threading.Event()
        owner = self

        class Handler(_Handler):
            server_of_test = owner

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    @property
    def url(self) -> str:
        """Its address, without a path."""
        return f"http://127.0.0.1:{self._http.server_port}"

    def openai_model(self, model: str = "gpt", provider: str = "openai") -> OpenAIModel:
        """A model of this server, spoken to as OpenAI's are."""
        return OpenAIModel(model, api_key=KEY, provider=provider, base_url=f"{self.url}/v1")

    def anthropic_model(self) -> AnthropicModel:
        """A model of this server, spoken to as Anthropic's are."""
        return AnthropicModel("claude", api_key=KEY, base_url=self.url)

    def next_reply(self, request: dict[str, Any]) -> Reply:
        """Note a request, and return what is to be done with it."""
        self.requests.append(request)
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_of_test: SummarizeServer

    def do_POST(self) -> None:
        self.server_of_test.headers.append({name.lower() for name in self.headers})
        length = int(self.headers.get("content-length", 0))
        reply = self.server_of_test.next_reply(json.loads(self.rfile.read(length)))
        self.server_of_test.stopping.wait(reply.delay_s)
        self.close_connection = True
        if reply.hangs_up:
            return
        try:
            self._send(reply)
        except OSError:
            return  # the client has given up

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("content-type", reply.content_type)
        self.send_header("content-length", str(len(reply.body)))
        self.end_headers()
        if reply.drip_s is None:
            self.wfile.write(reply.body)
            return
        for position in range(len(reply.body)):
            self.server_of_test.stopping.wait(reply.drip_s)
            self.wfile.write(reply.body[position : position + 1])

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test's output clean."""


class CountingGate:
    """A gate that is open, and remembers; `closed` holds what it raises, by model."""

    def __init__(self, closed: Mapping[str, Exception] | None = None) -> None:
        self.closed = dict(closed or {})
        self.checked: list[str] = []
        self.calls: list[CallRecord] = []

    def check(self, model: str) -> None:
        """Allow a call, unless the model is closed."""
        if model in self.closed:
            raise self.closed[model]
        self.checked.append(model)

    def record(self, call: CallRecord) -> None:
        """Remember a call."""
        self.calls.append(call)

    @property
    def outcomes(self) -> list[tuple[str, str]]:
        """Model and outcome of each call."""
        return [(call.model, call.outcome) for call in self.calls]


def a_call(**fields: Any) -> ModelCall:
    """A call of little patience."""
    return ModelCall(
        **{"system": "Be brief.", "user": "Text.", "max_tokens": 192, "timeout_s": 5.0, **fields}
    )


def a_request(text: str = "The deploy failed at step four. " * 40, **fields: Any) -> SummaryRequest:
    """A request of one message."""
    items = (SourceItem("1", "user", text, "2026-03-01T10:00:00Z"),)
    return SummaryRequest("leaf", 0, items, **{"target_tokens": 192, **fields})
