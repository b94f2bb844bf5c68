"""scikit-learn's own tests of searches, as they are installed, with MFSearchCV in the place of its searches."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[2]
MOST_FAILURES = 16
LONGEST = 1800  # seconds; alone it takes one of them

COLUMNS = "cv_results_ has further columns: plays, cost, estimates and bounds"
SHUFFLED = "the folds of a number of folds are shuffled, also the first ones"
ALL_FAIL = "a search in which no fit has a score is an error, and not a table of NaN"
FAILED_PLAY = "a score of NaN is a failed play, with a FitFailedWarning, and other splits still count"
DROPPED = "a candidate is dropped after three failed fits in a row, and does not fail on all splits"
OTHER_METRIC = "estimates and bounds are those of the metric that decides, in all columns"
NAMED = "refit may not name another metric than the one of scoring"

NON_FINITE = "test_searchcv_raise_warning_with_non_finite_score"
EXPECTED = {
    "test_unsupervised_grid_search": SHUFFLED,
    "test_grid_search_correct_score_results": SHUFFLED,
    "test_grid_search_cv_results": COLUMNS,
    "test_random_search_cv_results": COLUMNS,
    "test_custom_run_search": COLUMNS,
    "test_grid_search_cv_results_multimetric": OTHER_METRIC,
    "test_random_search_cv_results_multimetric": NAMED,
    "test_unsupported_sample_weight_scorer": ALL_FAIL,
    "test_search_cv_results_none_param": ALL_FAIL,
    "test_grid_search_failing_classifier": DROPPED,
    f"{NON_FINITE}[GridStandIn-specialized_params0-False]": FAILED_PLAY,
    f"{NON_FINITE}[GridStandIn-specialized_params0-True]": FAILED_PLAY,
    f"{NON_FINITE}[RandomizedStandIn-specialized_params1-False]": FAILED_PLAY,
    f"{NON_FINITE}[RandomizedStandIn-specialized_params1-True]": FAILED_PLAY,
}


def outcomes(folder):
    """Run the tests in a process of their own; say of each by name whether it failed."""
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "--pyargs", "sklearn.model_selection.tests.test_search"]
    options = ["-p", "tests.support.search_stand_in", "-p", "no:cacheprovider", "-p", "no:xdist", "-q"]
    places = [f"--rootdir={folder}", "-c", os.devnull, f"--junitxml={report}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(
        [*command, *options, *places],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment,
        timeout=LONGEST,
    )
    assert report.exists(), done.stdout + done.stderr
    cases = ET.parse(report).iter("testcase")  # noqa: S314 - our own report
    return {
        case.attrib["name"]: "\n".join(found.attrib.get("message", "") for found in case if found.tag != "skipped")
        if case.find("failure") is not None or case.find("error") is not None
        else None
        for case in cases
    }


@pytest.mark.slow
@pytest.mark.no_cover
def test_scikit_learns_own_tests_fail_only_where_we_differ_by_design(tmp_path):
    found = outcomes(tmp_path)
    assert len(found) > 150, found
    failed = {name: said for name, said in found.items() if said is not None}
    unexpected = {name: said for name, said in failed.items() if name not in EXPECTED}
    assert not unexpected
    assert [name for name in EXPECTED if name in found and name not in failed] == []
    assert len(failed) <= MOST_FAILURES
