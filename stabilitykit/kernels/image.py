"""Machine code as bytes: what the compiler makes, the cache keeps and a process loads.

Loading needs llvmlite only, so a process with a warm cache never imports numba. Freshly compiled
code is loaded from the same bytes: there is one way in, and every run tests it.
"""

from __future__ import annotations

import ctypes
import json
import struct
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

import attrs

__all__ = ["Image", "Loaded", "as_builtin", "host", "load_image", "target_machine"]

_METH_O = 0x0008
_LENGTH = struct.Struct("<I")


@attrs.frozen
class Image:
    """One compiled function.

    Parameters
    ----------
    symbol
        Its name in the object file.
    needs
        The names that the process must provide before the object file is loaded.
    code
        A relocatable object file of this processor.
    """

    symbol: str
    needs: tuple[str, ...]
    code: bytes = attrs.field(repr=False)

    def to_bytes(self) -> bytes:
        """Give one blob: length of the header, header in JSON, object file."""
        header = json.dumps({"symbol": self.symbol, "needs": self.needs}).encode()
        return _LENGTH.pack(len(header)) + header + self.code

    @classmethod
    def from_bytes(cls, blob: bytes) -> Image:
        """Read what ``to_bytes`` gave; the caller has checked that the bytes are untouched."""
        end = _LENGTH.size + _LENGTH.unpack_from(blob)[0]
        header = json.loads(blob[_LENGTH.size : end])
        return cls(header["symbol"], tuple(header["needs"]), blob[end:])


@attrs.frozen(eq=False)
class Loaded:
    """A compiled function in memory, for as long as this object lives.

    Parameters
    ----------
    address
        Where the function starts.
    engine
        What owns the memory.
    """

    address: int
    engine: Any = attrs.field(repr=False)


def load_image(image: Image) -> Loaded:
    """Put an image into executable memory.

    Raises
    ------
    LookupError
        When the process lacks a needed name (the linker would abort the process instead).
    """
    from llvmlite import binding

    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), target_machine())
    missing = [name for name in image.needs if not binding.address_of_symbol(name)]
    if missing:
        raise LookupError(f"no such symbol: {', '.join(missing)}")
    engine.add_object_file(binding.ObjectFileRef.from_data(image.code))
    engine.finalize_object()
    address = engine.get_function_address(image.symbol)
    if not address:
        raise LookupError(f"no such symbol: {image.symbol}")
    return Loaded(address, engine)


def target_machine() -> Any:
    """Give LLVM's description of this processor, for making and for loading images."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_default_triple()
    return target.create_target_machine(
        **host(),
        opt=3,
        reloc="static" if target.name.startswith("x86") else "default",
        codemodel="jitdefault",
        jit=True,
    )


@cache
def host() -> dict[str, str]:
    """Give the name and the features of this processor, in LLVM's words."""
    from llvmlite import binding

    return {"cpu": binding.get_host_cpu_name(), "features": binding.get_host_cpu_features().flatten()}


class _MethodDef(ctypes.Structure):
    """``PyMethodDef`` of the C API."""

    _fields_: ClassVar = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


def as_builtin(loaded: Loaded) -> Callable[[int], int]:
    """Make a Python function of a C function ``PyObject *(PyObject *self, PyObject *argument)``."""
    definition = _MethodDef(b"entry", loaded.address, _METH_O, None)
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_MethodDef), ctypes.py_object, ctypes.py_object)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    # The function owns its self, so the code and the definition live as long as the function.
    entry: Callable[[int], int] = make(ctypes.pointer(definition), (loaded, definition), __name__)
    return entry
