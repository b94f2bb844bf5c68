"""Optional dependencies: what is missing is said together with the extra that brings it."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec

from mfbandit.errors import MissingExtra

# Where the name to install differs from the name to import.
_DISTRIBUTIONS = {"sklearn": "scikit-learn", "distributed": "dask"}


@contextmanager
def needed_for(what: str, extra: str | None = None) -> Iterator[None]:
    """Import optional dependencies inside; a missing one raises MissingExtra, which names the extra.

    Args:
        what: the part of this package that needs them, as the subject of a sentence.
        extra: the extra of this package that brings them; without one, each is installed by its own name.

    Raises:
        MissingExtra: a library is not installed, or its version has not what is imported from it.

    >>> with needed_for("simulate", "sim"):
    ...     import no_such_library
    Traceback (most recent call last):
    mfbandit.errors.MissingExtra: simulate needs no_such_library: pip install 'mfbandit[sim]'
    """
    try:
        yield
    except MissingExtra:
        raise  # an inner guard knows better what it was for
    except ImportError as error:
        module = (error.name or "").partition(".")[0]
        if module in ("", "mfbandit"):
            raise  # a bug, which another installation would not mend
        library = _DISTRIBUTIONS.get(module, module)
        install = library if extra is None else f"'mfbandit[{extra}]'"
        if isinstance(error, ModuleNotFoundError) and not installed(module):
            raise MissingExtra(f"{what} needs {library}: pip install {install}", name=module) from None
        raise MissingExtra(
            f"{what} needs another version of {library} ({error}): pip install --upgrade {install}", name=module
        ) from error


def need(module: str, what: str, extra: str | None = None) -> None:
    """Import a module now, so that what it is for does not fail after an hour of work.

    Args:
        module: its name.
        what: the part of this package that needs it.
        extra: the extra of this package that brings it, if one does.

    >>> need("json", "a test", "sim")
    >>> need("no_such_library", "--plot", "plot")
    Traceback (most recent call last):
    mfbandit.errors.MissingExtra: --plot needs no_such_library: pip install 'mfbandit[plot]'
    """
    with needed_for(what, extra):
        import_module(module)


def installed(module: str) -> bool:
    """Whether a module can be imported, by its name alone.

    >>> installed("numpy"), installed("no_such_library")
    (True, False)
    """
    return find_spec(module) is not None
