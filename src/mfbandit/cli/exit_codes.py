"""How commands end: one line about what went wrong, and an exit code."""

import functools
import platform
import sys
import tempfile
import traceback
from collections.abc import Callable

import typer

import mfbandit
from mfbandit.cli.files import os_error_text
from mfbandit.errors import Conflict, InvalidArgument, MFBanditError

DONE, FAILED, WRONG_INPUT, INTERRUPTED = 0, 1, 2, 130


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command that fails print one line and exit: with 2 for wrong input, with 1 for anything else.

    The traceback of a bug is in a file that the line names.

    >>> @guarded
    ... def work():
    ...     raise InvalidArgument("n must be at least 1, got 0")
    >>> try:
    ...     work()
    ... except typer.Exit as error:
    ...     error.exit_code
    2
    """

    @functools.wraps(command)
    def run(*args: object, **options: object) -> None:
        try:
            command(*args, **options)
        except typer.Exit:
            raise
        except typer.Abort:  # Ctrl-C, or the end of the input, where a question was asked
            typer.echo(err=True)
            _stop("interrupted", INTERRUPTED)
        except KeyboardInterrupt:
            _stop("interrupted", INTERRUPTED)
        except MFBanditError as error:
            wrong = isinstance(error, InvalidArgument | Conflict | LookupError)
            _stop(str(error), WRONG_INPUT if wrong else FAILED)
        except BrokenPipeError:  # whoever read the output has seen enough
            raise typer.Exit(DONE) from None
        except OSError as error:
            _stop(os_error_text(error), FAILED)
        except MemoryError:
            _stop("there is not enough memory for this", FAILED)
        except Exception as error:
            _stop(f"mfbandit met a bug; the traceback is {_keep_traceback(error)}, please report it", FAILED)

    return run


def _keep_traceback(error: Exception) -> str:
    """Write a traceback to a new file in the temporary folder; return where it is."""
    versions = f"mfbandit {mfbandit.__version__}, Python {platform.python_version()}, {platform.platform()}\n"
    text = versions + "".join(traceback.format_exception(error))
    options = {"prefix": "mfbandit-bug-", "suffix": ".log", "encoding": "utf-8", "errors": "backslashreplace"}
    try:
        with tempfile.NamedTemporaryFile("w", delete=False, **options) as file:  # type: ignore[call-overload]
            file.write(text)
    except OSError:  # a disk that is full, perhaps
        sys.stderr.write(text)
        return "above"
    return f"in {file.name}"


def _stop(message: str, code: int) -> None:
    typer.echo(f"Error: {' '.join(message.split())}", err=True)
    raise typer.Exit(code)
