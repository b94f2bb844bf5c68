"""Sessions in a store, of either database: kept as hashes, over a restart, no longer than their token."""

import pytest

from mfbandit import Store
from mfbandit._internal.limits import MAX_SESSIONS_PER_TOKEN, SESSION_SECONDS
from mfbandit.store import Sessions


@pytest.fixture
def store(place, clock):
    with Store(place, clock=clock) as store:
        yield store


def made(store, name="me"):
    return store.token(store.create_token(name, "read"))


def kept(store):
    connection = store.read()
    rows = connection.query("SELECT key, value FROM mfbandit_store WHERE key LIKE ?", ("session:%",))
    connection.close()
    return rows


def test_started_found_again_and_ended(store):
    token, sessions = made(store), Sessions(store)
    text = sessions.start(token)
    assert sessions.token(text) == token
    assert Sessions(store).token(text) == token  # as after a restart
    assert len(kept(store)) == 1
    assert text.partition("_")[2] not in str(kept(store))
    sessions.end(text + "x")
    assert sessions.token(text) == token
    sessions.end(text)
    assert sessions.token(text) is None
    assert kept(store) == []
    sessions.end(text)


def test_each_ends_with_its_token_its_time_or_too_many_others(store, clock):
    sessions, token, other = Sessions(store), made(store), made(store, "other")
    first, kept_one = sessions.start(token), sessions.start(other)
    store.revoke_token(token.id)
    assert sessions.token(first) is None
    texts = []
    for _ in range(MAX_SESSIONS_PER_TOKEN):
        clock.now += 1
        texts.append(sessions.start(other))
    assert sessions.token(kept_one) is None
    assert len(kept(store)) == MAX_SESSIONS_PER_TOKEN
    clock.now += SESSION_SECONDS
    assert [sessions.token(text) for text in texts] == [None] * MAX_SESSIONS_PER_TOKEN


def test_a_row_that_is_none_is_passed_over(store):
    text = Sessions(store).start(made(store))
    for key, value in (("session:a", "{"), ("session:b", "{}"), ("session:c", "[1]")):
        row = [(key, value)]
        store.writer().submit(
            lambda connection, row=row: connection.insert("mfbandit_store", ("key", "value"), row)
        ).wait()
    assert Sessions(store).token(text) is not None
    assert Sessions(store).token("a_x") is None


def test_the_mark_of_tokens_stays(store):
    assert not store.needs_token()
    token = made(store)
    assert store.needs_token()
    store.revoke_token(token.id)
    assert store.tokens() == {}
    assert store.needs_token()
