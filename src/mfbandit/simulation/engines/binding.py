"""Kernels bound to functions of a user's policy: compiled together, and kept on disk by what the functions say.

Numba keeps compiled code by the file and the first line of a function, which would be the same for every policy. So a
kernel that is bound to other functions pretends to come from a file of its own, named by a digest of all the code that
goes into it. The digest follows functions that these functions call, and the numbers that they use. The files, which
say nothing, lie in a folder of the user.
"""

import dis
import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from mfbandit._internal.imports import needed_for
from mfbandit.errors import InvalidArgument

with needed_for("simulate", "sim"):
    from numba import njit, version_info
    from numba.core.errors import NumbaError, UnsupportedBytecodeError

Function = Callable[..., Any]

_KERNEL: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
NOT_COMPILED = (NumbaError, UnsupportedBytecodeError)  # what Numba raises for code that it cannot compile
# As for ``kernels.compiled``: parts borrow arrays, and make none of their own.
_PART = _KERNEL | {"_nrt": False, "forceinline": True}
REASON_LINES = 2  # of what Numba says


def bind(template: Function, **functions: Function) -> Function:
    """Compile a kernel, with some of its globals replaced by functions that are compiled as well.

    Args:
        template: a kernel as plain Python; what it calls by these names is replaced.
        functions: plain functions, or ones that Numba has compiled.

    >>> def twice(x): return 2 * of(x)
    >>> bind(twice, of=abs)(-2)
    4
    """
    joined = _joined(template, functions)
    file = _file(joined)
    kept = joined if file is None else _as_from(file, joined)
    bound: Function = njit(**_KERNEL, cache=file is not None)(kept)
    return bound


def join(template: Function, **functions: Function) -> Function:
    """Compile a part of a kernel, with some of its globals replaced; it is kept with the kernel that it is part of.

    >>> def thrice(x): return 3 * of(x)
    >>> join(thrice, of=abs)(-2)
    6
    """
    part: Function = njit(**_PART)(_joined(template, functions))
    return part


def _joined(template: Function, functions: dict[str, Function]) -> FunctionType:
    plain = _python(template)
    names = {**plain.__globals__, **{name: compiled_function(function) for name, function in functions.items()}}
    return FunctionType(plain.__code__, names, plain.__name__)


def _as_from(file: Path, function: FunctionType) -> FunctionType:
    return FunctionType(function.__code__.replace(co_filename=str(file)), function.__globals__, function.__name__)


def compiled_function(function: Function) -> Function:
    """Compile a plain function, with the plain functions that it calls; others are returned as they are.

    >>> def half(x): return x / 2
    >>> def quarter(x): return half(half(x))
    >>> compiled_function(quarter)(2.0)
    0.5
    """
    return _compiled(function, {})


def _compiled(function: Function, done: dict[int, Function]) -> Function:
    if not isinstance(function, FunctionType):
        return function
    if id(function) in done:
        raise InvalidArgument(f"{function.__name__} must not call itself, as it is compiled")
    called = {name: _compiled(thing, {**done, id(function): function}) for name, thing in _used(function).items()}
    names = {**function.__globals__, **called}
    captured = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    free = tuple(CellType(called.get(name, cell.cell_contents)) for name, cell in captured)
    copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__, free)
    compiled: Function = njit(**_PART)(copy)
    return compiled


def why_not(role: str, function: Function, error: Exception) -> str:
    """Say in a line why Numba could not compile a function.

    >>> why_not("index", len, NumbaError("no such thing"))
    'index (len) must be a function that Numba can compile: no such thing'
    """
    name = getattr(function, "__name__", repr(function))
    lines = [line.strip() for line in str(getattr(error, "msg", error)).splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("Failed in", "During:", "File", "-", ">"))]
    reason = " ".join((telling or lines)[:REASON_LINES])
    return f"{role} ({name}) must be a function that Numba can compile: {reason}"


def _python(function: Function) -> FunctionType:
    plain = getattr(function, "py_func", function)
    if not isinstance(plain, FunctionType):
        raise InvalidArgument(f"a function to compile must be written in Python, got {function!r}")
    return plain


def _used(function: FunctionType) -> dict[str, Any]:
    """What a function uses from outside, by name."""
    code, names = function.__code__, function.__globals__
    used = {name: names[name] for name in sorted(_names(code)) if name in names}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # not assigned yet
            used[name] = cell.cell_contents
    return used


def _names(code: CodeType) -> set[str]:
    """The names of the globals that some code reads; ``co_names`` would have those of attributes, too."""
    read = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return read.union(*(_names(part) for part in code.co_consts if isinstance(part, CodeType)))


# The digest


def _file(kernel: FunctionType) -> Path | None:
    """The file from which a kernel pretends to come; None if none can be written, or nothing is compiled."""
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        return None
    digest = hashlib.sha256(repr((sys.version, version_info, np.__version__)).encode())
    for part in _parts(kernel, set()):
        digest.update(part)
    try:
        folder = _folder()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder / f"{kernel.__name__}_{digest.hexdigest()[:32]}.py"
        if not path.exists():
            path.write_text(
                '"""A kernel bound to the functions of a policy; its compiled code is beside this file."""\n'
            )
    except OSError:
        return None
    return path


def _folder() -> Path:
    given = os.environ.get("NUMBA_CACHE_DIR")
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    return Path(given) / "mfbandit" if given else Path(base or Path.home() / ".cache") / "mfbandit" / "compiled"


def _parts(thing: object, seen: set[int]) -> Iterator[bytes]:
    """Everything in a function that compiled code depends on."""
    function = getattr(thing, "py_func", thing)
    yield type(function).__name__.encode()
    if isinstance(function, FunctionType):
        if id(function) in seen:
            return
        seen.add(id(function))
        yield _code(function.__code__)
        yield repr((function.__defaults__, function.__kwdefaults__)).encode()
        for name, used in _used(function).items():
            yield name.encode()
            yield from _parts(used, seen)
    elif isinstance(function, np.ndarray):
        yield repr((function.dtype, function.shape)).encode() + function.tobytes()
    elif isinstance(function, ModuleType | type) or callable(function):
        yield repr(getattr(function, "__qualname__", getattr(function, "__name__", ""))).encode()
    else:
        yield repr(function).encode()


def _code(code: CodeType) -> bytes:
    inner = [_code(part) if isinstance(part, CodeType) else part for part in code.co_consts]
    return repr((code.co_code, code.co_names, code.co_varnames, code.co_freevars, inner)).encode()
