"""How commands end: one line about what went wrong, and an exit code."""

import functools
from collections.abc import Callable
from typing import Any

import typer

DONE, FAILED, WRONG_INPUT, INTERRUPTED = 0, 1, 2, 130


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """One line on standard error and an exit code for what goes wrong: 2 for wrong input, 1 for a job that failed."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:  # noqa: ANN401 - whatever the command takes
        try:
            command(*args, **options)
        except (ValueError, LookupError) as error:
            _stop(str(error), WRONG_INPUT)
        except ArithmeticError as error:
            _stop(f"numbers of such sizes do not go together ({error})", WRONG_INPUT)
        except MemoryError:
            _stop("there is not enough memory for this", FAILED)
        except BrokenPipeError:  # whoever read the output has seen enough
            raise typer.Exit(DONE) from None
        except typer.Exit:
            raise
        except typer.Abort:  # Ctrl-C, or the end of the input, where a question was asked; a RuntimeError without words
            typer.echo(err=True)
            _stop("interrupted", INTERRUPTED)
        except (OSError, RuntimeError, ImportError) as error:
            _stop(str(error), FAILED)
        except KeyboardInterrupt:
            _stop("interrupted", INTERRUPTED)

    return run


def _stop(message: str, code: int) -> None:
    typer.echo(f"Error: {' '.join(message.split())}", err=True)
    raise typer.Exit(code)
