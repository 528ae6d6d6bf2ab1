"""LiteLLM's router, switched: a conversation whose decision says ``switch_model`` is served by the lighter deployment.

Deployments of one group carry the word of ``switch_model: {to: ...}`` in their ``model_info``; those without are the
usual ones::

    Router(model_list=[
        {"model_name": "chat", "litellm_params": {"model": "openai/big"}},
        {"model_name": "chat", "litellm_params": {"model": "openai/big-int8"}, "model_info": {"stability": "light"}},
    ])
    litellm.callbacks = [deployment_switch(gate)]

The router asks its callbacks on its asynchronous calls only. With ``router.completion`` give the deployment a name of
its own and ask the gate: ``router.completion(model=gate.model(session_id, "chat"), ...)``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stabilitykit.errors import MissingExtra
from stabilitykit.integrations.gate import Gate
from stabilitykit.integrations.telling import tell

__all__ = ["LABEL", "deployment_switch"]

LABEL = "stability"
"""Key in ``model_info`` that holds the word of ``switch_model``."""


def deployment_switch(gate: Gate, *, session_of: Callable[[Mapping[str, Any]], str | None] | None = None) -> Any:
    """Give a callback for ``litellm.callbacks``.

    Parameters
    ----------
    gate
        Is told every decision (``gate.note``).
    session_of
        Gives the conversation from the call's keyword arguments; None: ``metadata={"session_id": ...}``.

    Raises
    ------
    MissingExtra
        ``litellm`` is not installed (extra ``litellm``).
    """
    try:
        logger: Any = importlib.import_module("litellm.integrations.custom_logger").CustomLogger
    except ImportError:
        raise MissingExtra("litellm", "litellm") from None
    read = session_of or _session_id

    async def async_filter_deployments(
        self: Any,
        model: str,
        healthy_deployments: list[Any],
        messages: Any,
        request_kwargs: dict[str, Any] | None = None,
        parent_otel_span: Any = None,
    ) -> list[Any]:
        try:
            session_id = read(request_kwargs or {})
            return healthy_deployments if session_id is None else _chosen(healthy_deployments, gate, session_id)
        except Exception as error:
            tell("telemetry_failed", where="litellm", error=type(error).__name__)
            return healthy_deployments

    # Made here because its base class is the extra's.
    switch = type("DeploymentSwitch", (logger,), {"async_filter_deployments": async_filter_deployments})
    return switch()


def _session_id(request: Mapping[str, Any]) -> str | None:
    found = (request.get("metadata") or {}).get("session_id")
    return found if isinstance(found, str) else None


def _chosen(deployments: Sequence[Any], gate: Gate, session_id: str) -> list[Any]:
    """Keep the deployments of the word asked for; all, where there is none of it: a reply is better than none."""
    wanted = gate.model(session_id, "")
    chosen = [d for d in deployments if (d.get("model_info") or {}).get(LABEL, "") == wanted]
    if not chosen:
        tell("deployment_missing", wanted=wanted or "usual")
    return chosen or list(deployments)
