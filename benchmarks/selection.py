"""Selecting an arm within a budget, measured: exit status 1 and a sentence for each bar that does not hold.

python benchmarks/selection.py lcdb --out results/selection-lcdb.json
python benchmarks/selection.py lcbench --out results/selection-lcbench.json
python benchmarks/selection.py lcbench --resume --out results/selection-lcbench-resumed.json
python benchmarks/selection.py search --out results/selection-search.json
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))  # run as a script, its folder is where modules are looked for

from benchmarks import search_tasks, selection_lcbench, selection_lcdb, selection_search


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
    tuning = parts.add_parser("lcbench", help="on 300 configurations of a neural network a data set")
    tuning.add_argument("--seeds", type=int, default=10)
    tuning.add_argument("--data", type=Path, help="other data sets of this form, all of them reported")
    tuning.add_argument("--resume", action="store_true", help="all rules go on from earlier looks")
    tuning.add_argument("--quick", action="store_true", help="a smoke run, of a data set and a seed")
    tuning.add_argument("--out", type=Path)
    curves = parts.add_parser("lcdb", help="on recorded learning curves")
    curves.add_argument("--seeds", type=int, default=20)
    curves.add_argument("--quick", action="store_true", help="a smoke run, of a few data sets and two seeds")
    curves.add_argument("--out", type=Path)
    data = parts.add_parser("search", help="by scikit-learn's searches, Optuna and SMAC, on tasks of many kinds")
    data.add_argument("--seeds", type=int, default=5)
    data.add_argument("--developed", action="store_true", help="the tasks that the search was developed on")
    data.add_argument("--task", action="append", choices=list(selection_search.TASKS), help="instead, some tasks")
    data.add_argument("--only", default="", help="part of the name of a search")
    data.add_argument("--kept", type=Path, default=Path("results/fits"), help="folder of the fits that were made")
    data.add_argument("--workers", type=int, help="processes; as many as there are cores by default")
    data.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    if options.part == "search":
        tasks = search_tasks.DEVELOPED_ON if options.developed else search_tasks.REPORTED
        names = options.task or list(tasks)
        found = selection_search.search(
            options.kept, seeds=options.seeds, names=names, only=options.only, workers=options.workers
        )
        return report(found, selection_search.markdown(found), options.out)
    if options.part == "lcbench":
        tuned = selection_lcbench.measure(
            seeds=options.seeds, quick=options.quick, data=options.data, resume=options.resume
        )
        return report(tuned, selection_lcbench.markdown(tuned), options.out)
    result = selection_lcdb.replay(seeds=options.seeds, quick=options.quick)
    return report(result, selection_lcdb.markdown(result), options.out)


if __name__ == "__main__":
    sys.exit(main())
