"""Compile kernels, and keep what was compiled on disk: never under the name of another signature or another source.

Numba numbers the files of a function's signatures, and names them in an index that it checks against that function's
own source. Two processes that compile different signatures at the same time can then leave one's code under the
other's name; one that looks between the index and the file that follows finds what an older source was compiled to;
and a function stays as it was when only the kernels that were compiled into it change. Here a file is named after its
signature, in a folder named after the source of all kernels.
"""

from __future__ import annotations

import hashlib
import pickle
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile


def _digest() -> str:
    """Return what stands for the source of all kernels and what compiles them."""
    content = hashlib.sha256(f"numba {numba.__version__}".encode())
    for file in sorted(Path(__file__).parent.glob("*.py")):
        content.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return content.hexdigest()[:16]


DIGEST = _digest()
#: Bytes of the checksum before what a file holds.
_CHECKSUM = 32


class _Files(IndexDataCacheFile):  # type: ignore[misc]  # Numba has no types
    """The compiled signatures of one function, a file each; there is no index.

    Parameters
    ----------
    folder
        Where Numba would put them.
    name
        The function's.
    digest
        What stands for the source.
    """

    def __init__(self, folder: str, name: str, digest: str = DIGEST) -> None:
        self._folder, self._name = Path(folder, f"kernels-{digest}"), name
        super().__init__(str(self._folder), name, digest)

    def save(self, key: object, data: object) -> None:
        """Keep a compiled signature."""
        if not self._folder.is_dir():
            for other in self._folder.parent.glob("kernels-*"):
                shutil.rmtree(other, ignore_errors=True)
            self._folder.mkdir(parents=True, exist_ok=True)
        self._save_data(self._file(key), data)

    def load(self, key: object) -> Any:  # noqa: ANN401 - what Numba keeps
        """Return a compiled signature, None where there is none that is whole."""
        with suppress(OSError):
            stored = Path(self._folder, self._file(key)).read_bytes()
            checksum, content = stored[:_CHECKSUM], stored[_CHECKSUM:]
            # Machine code with a wrong bit would be run as it is.
            if checksum == hashlib.sha256(content).digest():
                return pickle.loads(content)
        return None

    def flush(self) -> None:
        """Forget what was compiled."""
        for file in self._folder.glob(f"{self._name}.*.nbc"):
            file.unlink(missing_ok=True)

    def _dump(self, obj: object) -> bytes:
        content: bytes = super()._dump(obj)
        return hashlib.sha256(content).digest() + content

    def _file(self, key: object) -> str:
        return f"{self._name}.{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}.nbc"


class _Kept(FunctionCache):  # type: ignore[misc]
    """What is kept of one function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base)

    def save_overload(self, sig: object, data: object) -> None:
        """Keep a compiled signature; where there is no room or no right to, it is compiled again."""
        with suppress(OSError):
            super().save_overload(sig, data)


def compiled(function: Callable[..., Any]) -> Any:  # noqa: ANN401 - Numba's dispatcher
    """Compile a function when it is called, without the interpreter's lock; what was compiled is kept on disk."""
    dispatcher = numba.njit(nogil=True)(function)
    # A process that is told to compile nothing has no cache to put this one in the place of, and Numba raises a
    # RuntimeError where it may write to no folder at all: every process then compiles for itself.
    if hasattr(dispatcher, "enable_caching"):
        with suppress(RuntimeError):
            dispatcher._cache = _Kept(function)
    return dispatcher
