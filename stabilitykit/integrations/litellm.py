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


def deployment_switch(
    gate: Gate,
    *,
    session_of: Callable[[Mapping[str, Any]], str | None] | None = None,
    tenant_of: Callable[[Mapping[str, Any]], str | None] | None = None,
) -> Any:
    """Give a callback for ``litellm.callbacks``.

    Parameters
    ----------
    gate
        Is told every decision (``gate.note``).
    session_of
        Gives the conversation from the call's keyword arguments; None: ``metadata={"session_id": ...}``.
    tenant_of
        The same for the tenant; None: ``metadata={"tenant": ...}``, and without that the default one.

    Raises
    ------
    MissingExtra
        ``litellm`` is not installed (extra ``litellm``).
    """
    try:
        logger: Any = importlib.import_module("litellm.integrations.custom_logger").CustomLogger
    except ImportError:
        raise MissingExtra("litellm", "litellm") from None
    read_session = session_of or _from_metadata("session_id")
    read_tenant = tenant_of or _from_metadata("tenant")

    async def async_filter_deployments(
        self: Any,
        model: str,
        healthy_deployments: list[Any],
        messages: Any,
        request_kwargs: dict[str, Any] | None = None,
        parent_otel_span: Any = None,
    ) -> list[Any]:
        try:
            request = request_kwargs or {}
            session_id, tenant = read_session(request), read_tenant(request) or ""
            if session_id is None:
                return healthy_deployments
            return _chosen(healthy_deployments, gate.model(session_id, "", tenant=tenant))
        except Exception as error:
            tell("telemetry_failed", where="litellm", error=type(error).__name__)
            return healthy_deployments

    # Made here because its base class is the extra's.
    switch = type("DeploymentSwitch", (logger,), {"async_filter_deployments": async_filter_deployments})
    return switch()


def _from_metadata(name: str) -> Callable[[Mapping[str, Any]], str | None]:
    def read(request: Mapping[str, Any]) -> str | None:
        found = (request.get("metadata") or {}).get(name)
        return found if isinstance(found, str) else None

    return read


def _chosen(deployments: Sequence[Any], wanted: str) -> list[Any]:
    """Keep the deployments of the word asked for; all, where there is none of it: a reply is better than none."""
    chosen = [d for d in deployments if (d.get("model_info") or {}).get(LABEL, "") == wanted]
    if not chosen:
        tell("deployment_missing", wanted=wanted or "usual")
    return chosen or list(deployments)
