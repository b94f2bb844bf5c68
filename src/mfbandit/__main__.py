"""The command ``mfbandit``, and ``python -m mfbandit``."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C while it is still loading ends it without a word."""
    try:
        from mfbandit.cli.main import app  # loading takes a moment, too

        app(prog_name="mfbandit")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
