"""What the service answers is what its OpenAPI document says, whatever it is asked."""

from collections import Counter
from contextlib import suppress

import hypothesis
import pytest
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from mfbandit import MFUCB, Bounded, Fidelities, Store
from mfbandit.service.app import create_app

FIDELITIES = Fidelities(costs=[1, 10], biases=[0.1, 0], concentration=Bounded(0, 1))
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    """The document, read from an application over a store with an experiment that has results."""
    with Store(tmp_path_factory.mktemp("store") / "a.db") as store:
        experiment = store.create("ads", MFUCB(), arms=["a", "b", "c"], fidelities=FIDELITIES, capital=1e6)
        for _ in range(5):
            experiment.tell(experiment.ask(), 0.5)
        experiment.ask(3)
        # With a token, as one of the requests makes one, and from then on all need one.
        headers = {"host": "localhost", "authorization": f"Bearer {store.create_token('test', 'admin')}"}
        yield schemathesis.openapi.from_asgi("/openapi.json", create_app(store), headers=headers), headers


def check(document, examples, change, **options):
    """Ask each operation of the document for many things; the statuses of the answers."""
    schema, headers = document
    seen: Counter[int] = Counter()
    for operation in (found.ok() for found in schema.get_all_operations()):

        @hypothesis.settings(max_examples=examples, database=None)
        @hypothesis.given(case=operation.as_strategy(**options))
        def ask(case):
            change(case)
            seen[case.call_and_validate(headers=headers, checks=CHECKS).status_code] += 1

        with suppress(hypothesis.errors.Unsatisfiable):  # what takes nothing cannot be given anything wrong
            ask()
    return seen


def known(case):
    """Nearly all would ask for an experiment that is not there."""
    if case.path_parameters and "name" in case.path_parameters and case.method != "DELETE":
        case.path_parameters["name"] = "ads"


@pytest.mark.slow
@pytest.mark.no_cover
def test_every_answer_is_as_documented(document):
    seen = check(document, 10, known)
    assert seen[200] > 50
    assert not {401, 403} & seen.keys()


def test_and_so_is_every_answer_to_names_of_any_kind(document):
    assert check(document, 4, lambda _: None)[404] > 20


@pytest.mark.slow
@pytest.mark.no_cover
def test_and_so_is_every_answer_to_requests_that_make_no_sense(document):
    seen = check(document, 10, known, generation_mode=schemathesis.GenerationMode.NEGATIVE)
    assert seen[422] > 50
