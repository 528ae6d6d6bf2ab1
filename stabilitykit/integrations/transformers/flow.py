"""Do the position ids that a model is given reach every rotary embedding unmodified? Read from its traced graph.

``torch.export`` writes down every operation of a forward pass. Each value in that graph is given a stage: position ids
in any shape, angles (positions times constants), a table (cosine and sine of angles). Whatever else is done on the way,
adding an offset, rounding to bfloat16, counting anew, is remembered. Where a layer multiplies a table with its queries
or keys a rotary embedding is used, and the table says where it came from (formulas B4.1, B4.2).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from stabilitykit.errors import MissingExtra, UsageError

__all__ = ["PositionFlow", "RotaryUse", "check_position_flow"]

POSITION, ANGLE, TABLE = "position ids", "angles", "table"
_SHAPES = frozenset(
    "_assert_tensor_metadata _to_copy alias chunk clone contiguous detach expand expand_as flatten getitem permute "
    "repeat reshape select slice split split_with_sizes squeeze stack t to transpose type_as unbind unflatten "
    "unsqueeze view view_as_complex view_as_real cat lift_fresh_copy repeat_interleave".split()
)
"""Operations that change shape or number format only."""
_PRODUCTS = frozenset("mul matmul bmm einsum outer div mm".split())
_WAVES = frozenset("cos sin polar".split())
_TABLES = frozenset("index embedding gather index_select".split())
_LATER = frozenset("neg real imag".split())
_EXACT_TO = {"torch.bfloat16": 256, "torch.float16": 2048, "torch.int8": 127, "torch.uint8": 255, "torch.int16": 32767}
"""The last whole number up to which a format holds all."""


@attrs.frozen
class RotaryUse:
    """One module that uses, or should use, a rotary embedding.

    Parameters
    ----------
    module
        Its name in the model.
    problem
        What was done to the position ids on the way; "" where they arrive as they were given.
    """

    module: str
    problem: str


@attrs.frozen
class PositionFlow:
    """Where the position ids of a model go.

    Parameters
    ----------
    uses
        Each module that turns queries and keys, in order, and each attention that should.
    """

    uses: tuple[RotaryUse, ...]

    @property
    def is_unmodified(self) -> bool:
        """Whether they reach every rotary embedding as they were given, and there is one."""
        return bool(self.uses) and not self.problems

    @property
    def problems(self) -> tuple[RotaryUse, ...]:
        """Where they do not."""
        return tuple(use for use in self.uses if use.problem)


@attrs.frozen
class _Label:
    """What a value in the graph is, and what went wrong before."""

    stage: str
    problem: str = ""


def check_position_flow(model: Any, *, tokens: int = 8) -> PositionFlow:
    """Trace a model once and follow its position ids.

    Parameters
    ----------
    model
        A causal language model whose ``forward`` takes ``input_ids`` and ``position_ids``. Nothing in it changes.
    tokens
        Length of the made-up input.

    Raises
    ------
    UsageError
        A model that takes no position ids or cannot be traced (frequencies that depend on the length, say).
    MissingExtra
        torch is not installed.

    Examples
    --------
    With a model of transformers::

        flow = check_position_flow(model)
        assert flow.is_unmodified, flow.problems
    """
    try:
        import torch
    except ImportError:
        raise MissingExtra("torch", "torch") from None
    device = next(model.parameters()).device
    ids = torch.zeros(1, tokens, dtype=torch.long, device=device)
    given = {
        "input_ids": ids,
        "position_ids": torch.arange(tokens, device=device)[None],
        "attention_mask": torch.ones_like(ids),
        "use_cache": False,
    }
    try:
        with torch.no_grad():
            traced = torch.export.export(model, (), given, strict=False)
    except Exception as error:
        raise UsageError(f"the model cannot be traced with position ids: {type(error).__name__}") from error
    uses = _Reader(traced).uses()
    return PositionFlow(tuple(uses) + tuple(_unturned(model, {use.module for use in uses})))


def _unturned(model: Any, turned: set[str]) -> Iterable[RotaryUse]:
    """Name each attention that uses no rotary embedding although the configuration does not say so."""
    turns = list(getattr(getattr(model, "config", None), "no_rope_layers", None) or ())  # 1: this layer turns
    for name, module in model.named_modules():
        layer = getattr(module, "layer_idx", None)
        if not isinstance(layer, int) or "Attention" not in type(module).__name__ or name in turned:
            continue
        if layer >= len(turns) or turns[layer]:
            yield RotaryUse(name, "no rotary embedding is used")


class _Reader:
    """Labels the values of one graph, from the first operation to the last."""

    def __init__(self, traced: Any) -> None:
        inputs = {spec.arg.name for spec in traced.graph_signature.input_specs if spec.kind.name == "USER_INPUT"}
        self._labels: dict[Any, _Label] = {}
        self._data: set[Any] = set()
        self._found: dict[str, str] = {}
        for node in traced.graph.nodes:
            if node.op == "placeholder" and node.name in inputs:
                self._data.add(node)
                if node.name == "position_ids":
                    self._labels[node] = _Label(POSITION)
            elif node.op == "call_function":
                self._read(node)

    def uses(self) -> list[RotaryUse]:
        """Give what was found, by module."""
        return [RotaryUse(module, problem) for module, problem in self._found.items()]

    def _read(self, node: Any) -> None:
        operands = list(node.all_input_nodes)
        if any(operand in self._data for operand in operands):
            self._data.add(node)
        name = _operation(node)
        known = [self._labels[operand] for operand in operands if operand in self._labels]
        if name in _WAVES:
            label: _Label | None = _wave(known)
        elif not known or name.endswith("_like") or name.startswith(("new_", "sym_")):
            return
        else:
            label = self._after(node, name, operands, known)
        if label is not None:
            self._labels[node] = _rounded(node, label)

    def _after(self, node: Any, name: str, operands: list[Any], known: list[_Label]) -> _Label | None:
        """Label the result of an operation on labelled values; None: it is no longer about positions."""
        label = next((one for one in known if one.problem), known[0])
        others = [operand for operand in operands if operand not in self._labels]
        if name in _SHAPES:
            return label
        if label.stage == TABLE:
            return self._after_table(node, name, label, others)
        if name in _TABLES and others:
            return attrs.evolve(label, stage=TABLE)
        if name in _PRODUCTS:
            return self._scaled(node, name, label, others)
        if name in ("add", "sub") and not others and len(known) == 1 and node.args[1] == 0:
            return label
        return _spoilt(label, name, node)

    def _after_table(self, node: Any, name: str, label: _Label, others: list[Any]) -> _Label | None:
        if any(other in self._data for other in others):
            if name == "mul":
                module = _module_of(node)
                self._found[module] = self._found.get(module) or label.problem
            return None
        return label if name in _PRODUCTS or name in _LATER else _spoilt(label, name, node)

    def _scaled(self, node: Any, name: str, label: _Label, others: list[Any]) -> _Label:
        """Label positions or angles times something: frequencies are constants of one dimension or more."""
        if any(other in self._data for other in others):
            return _spoilt(label, name, node)
        if not others:
            numbers = [arg for arg in node.args if isinstance(arg, int | float)]
            is_same = label.stage == ANGLE or numbers == [1] or numbers == [1.0]
            return label if is_same and len(node.all_input_nodes) == 1 else _spoilt(label, name, node)
        return attrs.evolve(label, stage=ANGLE)


def _operation(node: Any) -> str:
    """Name an operation without its overload: ``aten.to.dtype`` is ``to``."""
    return str(getattr(node.target, "_opname", None) or getattr(node.target, "__name__", node.target))


def _wave(known: list[_Label]) -> _Label:
    """Label a cosine or sine; one of something else than positions is a table that ignores them."""
    if not known:
        return _Label(TABLE, "the angles do not come from position_ids")
    return _Label(TABLE, next((label.problem for label in known if label.problem), ""))


def _rounded(node: Any, label: _Label) -> _Label:
    """Note a number format in which positions or angles cannot be told apart; a table may be rounded."""
    dtype = str(getattr(node.meta.get("val"), "dtype", ""))
    if label.stage == TABLE or label.problem or dtype not in _EXACT_TO:
        return label
    return attrs.evolve(label, problem=f"{label.stage} are {dtype}, exact up to {_EXACT_TO[dtype]} only")


def _spoilt(label: _Label, name: str, node: Any) -> _Label:
    if label.problem:
        return label
    numbers = [str(arg) for arg in node.args if isinstance(arg, int | float)]
    return attrs.evolve(label, problem=f"{name} {' '.join(numbers)}".strip() + f" on {label.stage}")


def _module_of(node: Any) -> str:
    """Name the module whose forward pass an operation belongs to."""
    stack = node.meta.get("nn_module_stack") or {}
    return next((str(path) for path, _ in reversed(list(stack.values()))), "")
