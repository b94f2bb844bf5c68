"""What people see when the best arm is in doubt: on the command line and on the page."""

import httpx

from tests.support.commands import call, done, told
from tests.support.services import served

TOML = """
[experiment]
arms = ["ad-a", "ad-b"]
widen = {widen}

[fidelities]
costs = [1, 10]
biases = [0.1, 0]
scale = 0.1
"""


def test_the_headline_names_the_runner_up_and_the_reason(tmp_path):
    toml = tmp_path / "ads.toml"
    toml.write_text(TOML.format(widen="true"))
    past = tmp_path / "past.csv"
    past.write_text("arm,fidelity,reward\n" + "ad-b,0,0.9\n" * 9 + "ad-a,0,0.2\n" * 9)
    with served(tmp_path / "ads.db") as service:
        done("experiment", "create", service.url, "ads", toml)
        done("experiment", "import", service.url, "ads", past)
        shown = done("experiment", "status", service.url, "ads")
        page = httpx.get(f"{service.url}/experiments/ads").text
        record = told("experiment", "status", service.url, "ads")
    reason = "it has no result at the highest fidelity yet"
    assert f"best so far  ad-b (arm 1), in doubt (or ad-a, arm 0): {reason}" in shown.splitlines()
    assert '<h2 id="headline">Leading, but in doubt</h2>' in page
    assert f"or ad-a: {reason}" in page
    assert (record["doubt"], record["runner_up_label"], record["widen"]) == (reason, "ad-a", True)


def test_a_decision_needs_no_result_at_the_highest_fidelity(tmp_path):
    toml = tmp_path / "ads.toml"
    toml.write_text(TOML.format(widen="false") + "[stop]\nlevel = 0.95\ntolerance = 0.3\n")
    past = tmp_path / "past.csv"
    past.write_text("arm,fidelity,reward\n" + "ad-b,0,0.6\n" * 30 + "ad-a,0,0.45\n" * 30)
    with served(tmp_path / "ads.db") as service:
        done("experiment", "create", service.url, "ads", toml)
        done("experiment", "import", service.url, "ads", past)
        lines = done("experiment", "status", service.url, "ads").splitlines()
        page = httpx.get(f"{service.url}/experiments/ads").text
    assert "best so far  ad-b (arm 1)" in lines
    assert "decided      no other is better than ad-b (arm 1) by more than 0.3, 95 % sure" in lines
    assert "confidence   without any tolerance: Not sure yet that ad-b is the best" in "\n".join(lines)
    assert "The answer</h2>" in page
    assert "no result at the highest fidelity" not in page


def test_widen_is_true_or_false(tmp_path):
    toml = tmp_path / "ads.toml"
    toml.write_text(TOML.format(widen='"yes"'))
    result = call("experiment", "create", tmp_path / "ads.db", "ads", toml)
    assert result.exit_code == 2
    assert "[experiment] widen must be true or false, got 'yes'" in result.stderr
