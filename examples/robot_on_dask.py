"""Run a study of the robot's grips on a Dask cluster, here a local one.

With a scheduler's address instead of LocalCluster() it runs on many machines. Finished chunks are kept in a folder: if
the program is stopped and started again, it goes on from them, with the same numbers.

    python examples/robot_on_dask.py [folder]
"""

import sys
import tempfile
from typing import Any

import distributed
from joblib import parallel_config
from robot import workshop

import mfbandit as mfb

dask: Any = distributed  # it has no types


def main(folder: str) -> None:
    policies: list[mfb.Policy] = [mfb.MFUCB(rho=0.25), mfb.UCB(rho=0.25)]
    with (
        dask.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        dask.Client(cluster) as client,
        parallel_config("dask", client=client),
    ):
        found = mfb.study(
            {"grips": workshop()},
            policies,
            capitals=[3600.0 * hours for hours in (12, 36, 108)],
            runs=40,
            account="top",  # the simulator earns nothing
            results=folder,
            progress=False,
        )
    print("regret in seconds, where time in the simulator earns nothing")
    print(found)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as forgotten:
        main(sys.argv[1] if len(sys.argv) > 1 else forgotten)
