"""Pack real learning curves for ``mfbandit.learning_curve_problem`` from the PyPI package lcdb.

    pip download --no-deps lcdb==0.1.0
    python scripts/pack_learning_curves.py lcdb-0.1.0.tar.gz src/mfbandit/data/learning_curves.npz
    python scripts/pack_learning_curves.py lcdb-0.1.0.tar.gz benchmarks/more_learning_curves.npz --more

Of the data sets listed here it takes every one with a size N at which, as at the sizes next to N/4, N/16 and N/64, at
least 18 of the 20 learners have five results or more (the others failed or took too long, and are left out there); the
largest such N. A size may miss its mark by a factor of 0.6 to 1.05. A data set on which most learners' results do not
vary from split to split is left out. With --more it takes those that this leaves out and that have at least 10 such
learners with sizes within a factor of 0.5 to 1.5: most of them are small. The other data sets of lcdb are held out, for
judging policies on curves that nobody has looked at. Needs pandas.
"""

import argparse
import tarfile
from dataclasses import dataclass

import numpy as np
import pandas as pd

RESULTS = 5  # at least so many of a learner at a size
PARTS = (64, 16, 4, 1)
INNER = 25  # splits of the training data for each split of the test data
IDS = """
3 11 13 16 21 23 26 30 32 38 46 55 60 179 181 184 188 273 299 336 351 357 389 391 393 396 399 446 679 718 722 727 734
737 741 751 761 797 803 807 816 821 823 837 845 847 866 881 901 904 912 914 923 934 958 962 971 977 979 991 995 1002
1019 1021 1040 1042 1050 1056 1068 1083 1085 1087 1111 1114 1119 1128 1134 1139 1146 1166 1233 1236 1448 1457 1464
1468 1477 1483 1486 1488 1494 1503 1515 1567 1590 1597 4135 4534 4541 23517 40664 40670 40677 40687 40713 40910 40975
40981 40983 40994 41027 41143 41145 41150 41157 41159 41163 41165 41167 41169 41972 42733 42742 42809
"""


@dataclass(frozen=True)
class Rule:
    """Which data sets are taken: those with so many learners at sizes that miss their marks by no more than this."""

    learners: int
    low: float
    high: float


EXACT, LOOSE = Rule(18, 0.6, 1.05), Rule(10, 0.5, 1.5)


def read(archive: str) -> tuple[pd.DataFrame, dict[int, str], list[str]]:
    """The measurements of the listed data sets, the data sets' names, and the learners in their order."""
    with tarfile.open(archive) as tar:
        folder = tar.getnames()[0].split("/")[0]
        table = pd.read_csv(tar.extractfile(f"{folder}/lcdb/database-accuracy.csv"))
        about = pd.read_csv(tar.extractfile(f"{folder}/lcdb/datasets.csv"))
    table["learner"] = table["learner"].str.split(".").str[-1]
    learners = sorted(table["learner"].unique().tolist(), key=str.lower)
    names = dict(zip(about["openmlid"].astype(int), about["Name"], strict=True))
    return table[table["openmlid"].isin([int(i) for i in IDS.split()])], names, learners


def rungs(curves: pd.DataFrame, learners: list[str], rule: Rule) -> tuple[list[int], list[str]]:
    """The sizes of one data set that become fidelities, and the learners that become arms; none where too few."""
    counts = curves.pivot_table(index="size_train", columns="learner", values="score_test", aggfunc="count")
    enough = counts.reindex(columns=learners).fillna(0) >= RESULTS
    sizes = [int(size) for size in enough.index]
    for largest in sizes[::-1]:
        kept = [_nearest(sizes, largest / part, rule) for part in PARTS]
        arms = enough.columns[enough.loc[kept].all(axis=0)].tolist() if None not in kept else []
        if len(arms) >= rule.learners and len(set(kept)) == len(kept):
            return ([size for size in kept if size], arms) if _varies(curves, largest) else ([], [])
    return [], []


def _nearest(sizes: list[int], mark: float, rule: Rule) -> int | None:
    near = [size for size in sizes if rule.low * mark <= size <= rule.high * mark]
    return min(near, key=lambda size: abs(np.log(size / mark)), default=None)


def _varies(curves: pd.DataFrame, size: int) -> bool:
    distinct = curves[curves["size_train"] == size].groupby("learner")["score_test"].nunique()
    return bool((distinct > 1).mean() > 0.5)


def unique_names(ids: list[int], names: dict[int, str]) -> list[str]:
    """A name for each data set; its number is added where there is none or where several share it."""
    plain = [names.get(i, "openml") for i in ids]
    return [
        f"{name}-{i}" if name == "openml" or plain.count(name) > 1 else name for i, name in zip(ids, plain, strict=True)
    ]


def main(archive: str, target: str, *, more: bool) -> None:
    """Read, choose and write."""
    table, names, learners = read(archive)
    ids, sizes, present, seconds, counts, scores, splits = [], [], [], [], [], [], []
    for number, curves in table.groupby("openmlid"):
        kept, arms = rungs(curves, learners, EXACT)
        if more:
            kept, arms = rungs(curves, learners, LOOSE) if not kept else ([], [])
        if not kept:
            continue
        ids.append(int(number))
        sizes.append(kept)
        present.append([learner in arms for learner in learners])
        for size in kept:
            at = curves[curves["size_train"] == size].groupby("learner")
            rows = [at.get_group(learner) for learner in arms]
            each = [row["score_test"].to_numpy() for row in rows]
            seconds.append(at["traintime"].mean()[arms].mean())
            counts += [len(values) for values in each]
            scores.append(np.round(np.concatenate(each) * 10_000))  # lcdb gives four digits
            splits += [(INNER * row["outer_seed"] + row["inner_seed"]).to_numpy() for row in rows]
    np.savez_compressed(
        target,
        ids=np.array(ids, np.int32),
        names=np.array(unique_names(ids, names)),
        learners=np.array(learners),
        present=np.array(present),
        sizes=np.array(sizes, np.int32),
        seconds=np.array(seconds, np.float32).reshape(-1, len(PARTS)),
        counts=np.array(counts, np.uint16),
        scores=np.concatenate(scores).astype(np.uint16),
        splits=np.concatenate(splits).astype(np.uint8),
    )
    print(f"{len(ids)} data sets: {', '.join(unique_names(ids, names))}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Pack learning curves of lcdb.")
    parser.add_argument("archive", help="lcdb-0.1.0.tar.gz")
    parser.add_argument("target", help="the file to write")
    parser.add_argument("--more", action="store_true", help="those that miss the marks by more")
    main(**vars(parser.parse_args()))
