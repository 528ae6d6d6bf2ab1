"""From numba's result to an image: numba is the front end, LLVM's optimiser runs once per image.

Left alone, numba optimises every function anew together with all that it calls: a quarter of the
compile time of the pass, and no faster code than one run over the whole.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from stabilitykit.kernels.image import Image, target_machine

__all__ = ["front_end_only", "make_image"]


@contextlib.contextmanager
def front_end_only() -> Iterator[None]:
    """Keep numba's optimiser off, for nobody but the thread in here."""
    from numba.core import config as numba_config
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target

    config: Any = numba_config
    cpu_target.target_context.codegen()  # it reads the level once, for all that the host compiles later
    with global_compiler_lock:
        before = config.OPT
        config.OPT = type(before)(0)
        try:
            yield
        finally:
            config.OPT = before


def make_image(assembly: str, symbol: str, result: Any = None) -> Image:
    """Turn LLVM assembly, and numba's result that it may call, into an optimised object file."""
    from llvmlite import binding

    module = binding.parse_assembly(assembly)
    if result is not None:
        _, _, (_, bitcode) = result.library.serialize_using_object_code()
        module.link_in(binding.parse_bitcode(bitcode))
    for function in module.functions:
        if not function.is_declaration:
            function.linkage = "external" if function.name == symbol else "internal"
    _optimise(module)
    outside = [x.name for x in (*module.functions, *module.global_variables) if x.is_declaration]
    needs = tuple(sorted(name for name in outside if not name.startswith("llvm.")))
    return Image(symbol, needs, target_machine().emit_object(module))


def _optimise(module: Any) -> None:
    """Run LLVM's pipeline of level 2 with loop vectorisation over a whole module.

    Level 3 takes a fifth longer and the pass is not a nanosecond faster for it.
    """
    from llvmlite import binding

    tuning = binding.create_pipeline_tuning_options(speed_level=2)
    tuning.loop_vectorization = True
    builder = binding.create_pass_builder(target_machine(), tuning)
    builder.getModulePassManager().run(module, builder)
