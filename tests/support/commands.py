"""Commands as people and machines call them, in this process."""

import json

from typer.testing import CliRunner

from mfbandit.cli.main import app


def call(*words, text=None):
    """What comes of a command: exit code, standard output and standard error."""
    return CliRunner().invoke(app, [str(word) for word in words], input=text)


def done(*words, text=None):
    """A command that must succeed: what it printed."""
    result = call(*words, text=text)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout


def told(*words):
    """The same as JSON."""
    return json.loads(done(*words, "--json"))


def refused(result, *said, code=2):
    """One line on standard error with these words and nothing else; the exit code says wrong input, or ``code``."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    for words in said:
        assert words in result.stderr


def strict(text):
    """JSON as the standard has it: without NaN and infinities."""

    def refuse(name):
        raise AssertionError(f"{name} in JSON")

    return json.loads(text, parse_constant=refuse)
