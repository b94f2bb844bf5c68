"""The command ``mfbandit``, and ``python -m mfbandit``."""

import io
import sys

from mfbandit._internal.imports import needed_for
from mfbandit.errors import MissingExtra


def main() -> None:
    """Run the command line; Ctrl-C while it is still loading ends it without a word."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # whatever text a name has, or a terminal lacks
    try:
        with needed_for("mfbandit on the command line", "cli"):
            from mfbandit.cli.main import app  # loading takes a moment, too

        app(prog_name="mfbandit")
    except MissingExtra as error:
        sys.exit(f"Error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
