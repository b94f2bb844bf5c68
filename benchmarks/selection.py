"""Selecting an arm within a budget, measured: exit status 1 and a sentence for each bar that does not hold.

python benchmarks/selection.py replay --out results/selection-replay.json
python benchmarks/selection.py search --out results/selection-search.json --kept results/selection-search.jsonl
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))  # run as a script, its folder is where modules are looked for

from benchmarks import selection_replay, selection_search


def report(result: dict[str, Any], table: str, out: Path | None) -> int:
    """Write, print, and say what does not hold."""
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(result, indent=1, ensure_ascii=False))
    print(table)
    print("\n".join(result["broken"]), file=sys.stderr)
    return 1 if result["broken"] else 0


def main(arguments: list[str] | None = None) -> int:
    """Measure one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    curves = parts.add_parser("replay", help="on recorded learning curves")
    curves.add_argument("--seeds", type=int, default=20)
    curves.add_argument("--quick", action="store_true", help="a smoke run, of a few data sets and two seeds")
    curves.add_argument("--out", type=Path)
    data = parts.add_parser("search", help="by scikit-learn's searches, on its bundled data")
    data.add_argument("--seeds", type=int, default=10)
    data.add_argument("--data", nargs="*", default=list(selection_search.DATA), choices=list(selection_search.DATA))
    data.add_argument("--only", default="", help="part of the name of a search")
    data.add_argument("--kept", type=Path, default=Path("results/selection-search.jsonl"), help="what was run already")
    data.add_argument("--out", type=Path)
    data.add_argument("--picture", type=Path, help="where to draw score against cost")
    options = parser.parse_args(arguments)
    if options.part == "search":
        found = selection_search.search(options.kept, seeds=options.seeds, data=options.data, only=options.only)
        if options.picture is not None:
            selection_search.draw(found["rows"], options.picture)
        return report(found, selection_search.markdown(found), options.out)
    result = selection_replay.replay(seeds=options.seeds, quick=options.quick)
    return report(result, selection_replay.markdown(result), options.out)


if __name__ == "__main__":
    sys.exit(main())
