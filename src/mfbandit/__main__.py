"""``python -m mfbandit``: the command line."""

from mfbandit.cli import app

app(prog_name="mfbandit")
