"""Model files that a detector names: ``model: ./probe.npz``, read and checked when the pack is loaded.

A file is NumPy's ``.npz`` (a zip of ``.npy``) without pickled objects, at most 8 MB also when
unpacked. Like a path in ``extends`` it is relative to the file that says it, and its real path
stays under the root.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import zipfile
from typing import Any

import numpy as np

from stabilitykit.rules.files.locate import Place
from stabilitykit.signals import Weights

__all__ = ["MAX_MODEL_BYTES", "parse_weights", "read_weights"]

MAX_MODEL_BYTES = 8_000_000
_MAX_ARRAYS = 64


def read_weights(place: Place, path: object) -> Weights | str:
    """Read the model file that stands at a place of a pack; gives what is wrong with it as a text.

    Parameters
    ----------
    place
        Where the pack says the path: its file decides what the path is relative to.
    path
        The value in the pack.
    """
    home = place.doc.home
    if not isinstance(path, str) or "\0" in path or not path.endswith(".npz"):
        return "the path of a model file is wanted, relative to this file, for example `./probe.npz`"
    if home is None or os.path.isabs(path):
        return "a model file must be named relative to its pack file"
    folder, root = home
    real = os.path.realpath(os.path.join(folder, path))
    if os.path.commonpath([real, root]) != root:
        return f"`{path}` leaves the folder of the first pack file"
    try:
        if not stat.S_ISREG(os.stat(real).st_mode):
            return f"`{path}` is not a regular file"
        with open(real, "rb") as file:
            content = file.read(MAX_MODEL_BYTES + 1)
    except OSError as error:
        return f"`{path}` cannot be read: {os.strerror(error.errno) if error.errno else 'unknown error'}"
    found = parse_weights(content)
    return f"`{path}` {found}" if isinstance(found, str) else found


def parse_weights(content: bytes) -> Weights | str:
    """Read the bytes of a model file; gives what is wrong with them as a text.

    Returns
    -------
    Weights
        Numbers as float64; texts as they are.
    """
    if len(content) > MAX_MODEL_BYTES:
        return f"is over {MAX_MODEL_BYTES:,} bytes"
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as names:
            sizes = [entry.file_size for entry in names.infolist()]
        if len(sizes) > _MAX_ARRAYS or sum(sizes) > MAX_MODEL_BYTES:
            return f"unpacks to over {MAX_MODEL_BYTES:,} bytes or {_MAX_ARRAYS} arrays"
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except Exception:  # zip, zlib and NumPy each raise their own of a damaged file
        return "is no .npz file of plain arrays"
    taken: dict[str, Any] = {}
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiuU":
            return f"holds `{name}`, which is neither numbers nor text"
        taken[name] = array if array.dtype.kind == "U" else array.astype(np.float64)
        if array.dtype.kind != "U" and not np.isfinite(taken[name]).all():
            return f"holds `{name}` with a number that is not finite"
        taken[name].setflags(write=False)
    return Weights(hashlib.sha256(content).hexdigest(), taken)
