"""No part of a password is in any message."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from mfbandit import Store
from mfbandit.cli.main import app
from mfbandit.errors import MFBanditError

ADDRESSES = [
    "postgresql://me:hush{}pass@127.0.0.1:1/ads",
    "postgresql://me:hush%2Fpass@127.0.0.1:1/ads",
    "postgresql://me:hush%zzpass@127.0.0.1:1/ads",
    "postgresql://me:hush/pass@127.0.0.1:1/ads",
    "postgresql://me:hush?pass@127.0.0.1:1/ads",
    "postgresql://me:hush#pass@127.0.0.1:1/ads",
    "postgresql://me:hush@pass@127.0.0.1:1/ads",
    "postgresql://me:12/hush?pass@127.0.0.1:1/ads",
    "postgresql://127.0.0.1:1/ads?user=me&password=hushpass",
    "postgresql://127.0.0.1:1/ads?user=me&password=hush@pass",
    "postgresql://127.0.0.1:1/ads?sslpassword=hushpass&nonsense=hush",
    "postgresql://me:hushpass/127.0.0.1/ads",
    "postgresql:/me:hushpass@127.0.0.1/ads",
    "postgresql+psycopg://me:hushpass@127.0.0.1/ads",
    "mysql://me:hushpass@127.0.0.1/ads",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_of_an_address(address):
    with pytest.raises(MFBanditError) as caught:
        Store(address)
    for words in (["doctor", address], ["experiment", "list", address], ["serve", address]):
        done = CliRunner().invoke(app, words)
        assert done.exit_code in (1, 2)
        assert_hushed(done.output + done.stderr)
    assert_hushed(str(caught.value))


def assert_hushed(text):
    assert text
    assert "hush" not in text
    assert "pass@" not in text
    assert "pass" not in text.replace("password@host", "")


def test_of_the_arguments_of_a_program(tmp_path):
    code = "import sys; from mfbandit import Store; Store(sys.argv[2]); print(open(sys.argv[2] + '-writer').read())"
    words = [sys.executable, "-c", code, "postgresql://me:hushpass@host/ads", str(tmp_path / "store.db")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["purpose"] == "-c"
