"""Progress bars, lines and interrupts."""

import signal
import sys

import pytest

from mfbandit._internal.progress import keep_interrupts, print_line, progress_bar


def test_a_bar_is_shown_when_wanted(capsys):
    with progress_bar("counting", total=2, shown=True) as tick:
        tick(1)
    assert "counting" in capsys.readouterr().err


def test_without_rich_there_are_plain_lines(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich", None)  # what Python takes for a module that is not there
    with progress_bar("counting", total=0.7, shown=True) as tick:
        for _ in range(7):
            tick(0.1)
    assert capsys.readouterr().err.splitlines() == [f"counting: {done} %" for done in (10, 20, 40, 50, 70, 80, 100)]


def test_no_bar_without_a_terminal(capsys):
    with progress_bar("counting", total=2) as tick:
        tick(1)
    assert capsys.readouterr().err == ""


def test_notes_go_to_standard_error(capsys):
    print_line("said")
    print_line("said to logs", on_terminal=False)
    assert capsys.readouterr().err == "said\nsaid to logs\n"


def test_a_swallowed_interrupt_comes_back():
    with keep_interrupts() as check:
        check()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            check()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(("times", "finished"), [(1, True), (2, False)])  # the second one is not delayed
def test_an_interrupt_waits_where_it_is_held(times, finished):
    done = []

    def work():
        with keep_interrupts() as interrupts, interrupts.held():
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
            done.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert bool(done) is finished


class Leaving:
    """Raises in __del__, where no caller can catch it."""

    def __init__(self, error):
        self.error = error

    def __del__(self):
        raise self.error


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_only_interrupts_are_kept_quiet(monkeypatch):
    heard = []
    monkeypatch.setattr(sys, "unraisablehook", lambda thing: heard.append(thing.exc_type))
    with keep_interrupts():
        del (leaving := [Leaving(KeyboardInterrupt())])[0]
        del (leaving := [Leaving(ZeroDivisionError())])[0]
    assert heard == [ZeroDivisionError]
    assert leaving == []
