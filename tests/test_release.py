"""Whatever names the version names the same one."""

import re
from pathlib import Path

import mfbandit

ROOT = Path(__file__).parents[1]


def test_changelog_and_citation_are_of_this_version():
    changelog, citation = ((ROOT / name).read_text() for name in ("CHANGELOG.md", "CITATION.cff"))
    version, date = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", changelog, re.MULTILINE)[0]
    assert version == mfbandit.__version__
    assert f"\nversion: {version}\n" in citation
    assert f'\ndate-released: "{date}"\n' in citation
