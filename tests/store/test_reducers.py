"""Leases, request keys and recent events: many at once give what one by one gives, for every kind of event."""

from operator import itemgetter

from hypothesis import given, settings
from hypothesis import strategies as st

from mfbandit._internal import limits
from mfbandit.experiment import ArmAdded
from mfbandit.experiment.codec import PackedLog
from mfbandit.store import import_ids
from mfbandit.store.import_ids import ImportIds
from mfbandit.store.leases import Leases
from mfbandit.store.recent import RecentEvents
from mfbandit.store.request_keys import RequestKeys
from tests.support.effort import examples
from tests.support.logs import begun, logs


@given(logs(), st.data())
def test_leases(records, data):
    single, watched, twice = Leases(), Leases(), Leases()
    for record in records:
        single.apply(record)
        watched.apply(record)
        assert watched.next_to_end(3) == sorted(watched.due.items(), key=itemgetter(1))[:3]
    cut = data.draw(st.integers(0, len(records)))
    twice.apply_all(PackedLog.of_records(records[:cut]))
    twice.apply_all(PackedLog.of_records(records[cut:]))
    assert list(single.due.items()) == list(twice.due.items())
    assert single.next_to_end(3) == twice.next_to_end(3)
    now = data.draw(st.sampled_from([0.0, 1e4, 1e9]))
    assert single.take_expired(now) == twice.take_expired(now)
    assert list(single.due.items()) == list(twice.due.items())


@settings(max_examples=examples(40))
@given(logs(), st.data(), st.sampled_from([0, 2, 100]))
def test_import_ids(records, data, unsorted):
    before, import_ids.UNSORTED = import_ids.UNSORTED, unsorted
    try:
        single, twice = ImportIds(), ImportIds()
        for record in records:
            single.apply(record)
        cut = data.draw(st.integers(0, len(records)))
        twice.apply_all(PackedLog.of_records(records[:cut]))
        twice.apply_all(PackedLog.of_records(records[cut:]))
    finally:
        import_ids.UNSORTED = before
    names = [f"row-{play}" for play in range(len(records))]
    assert [single.find(name) for name in names] == [twice.find(name) for name in names]
    with_ids = {str(record.request)[1:]: record.event.play for record in records if str(record.request)[0] == "\t"}
    assert {name: single.find(name) for name in with_ids} == with_ids
    assert len(single) == len(twice) == len(with_ids)


def folded(records):
    state = begun()
    for record in records:
        state.apply(record.event)
    return state


@given(logs())
def test_recent_events(records):
    state = begun()
    single = RecentEvents(state, len(state.labels))
    for record in records:
        state.apply(record.event)
        single.apply(record)
    many = RecentEvents(folded(records), len(begun().labels))
    many.apply_all(PackedLog.of_records(records), lambda numbers: [records[number - 1] for number in numbers])
    assert (single.settled, single.events) == (many.settled, many.events)
    for arm in (None, 0, len(state.labels) - 1):
        assert single.story.numbers(arm=arm).tolist() == many.story.numbers(arm=arm).tolist()
        assert single.story.numbers([ArmAdded], arm).tolist() == many.story.numbers([ArmAdded], arm).tolist()
    assert single.timeline.start == many.timeline.start
    assert single.timeline.width == many.timeline.width
    # Costs are added up in another order.
    assert abs(single.timeline.spent - many.timeline.spent).max() < 1e-9


@given(logs(), st.sampled_from([1, 3, 100]))
def test_request_keys(records, kept):
    before, limits.REQUEST_KEYS_KEPT = limits.REQUEST_KEYS_KEPT, kept
    try:
        state = begun()
        single = RequestKeys(state)
        for record in records:
            state.apply(record.event)
            single.apply(record)
        single.forget_old()
        many, log = RequestKeys(state), PackedLog.of_records(records)
        many.apply_all(log, lambda numbers: [records[number - 1] for number in numbers])
        many.forget_old()
    finally:
        limits.REQUEST_KEYS_KEPT = before
    assert dict(single.known) == dict(many.known)
