"""Name the tests that failed in the last run, and fail if they are more than a few, for `make test-again`.

Use ``python scripts/few_failures.py --most 3``.
"""

import argparse
import json
import sys
from pathlib import Path

FAILED = Path(".pytest_cache/v/cache/lastfailed")  # written by pytest


def main(most: int) -> None:
    """Print the names, or end with an error."""
    names = sorted(json.loads(FAILED.read_text())) if FAILED.exists() else []
    if len(names) > most:
        sys.exit(f"{len(names)} tests failed; at most {most} are tried again")
    print(f"Failed beside other tests, and tried again alone: {', '.join(names) or 'none'}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Name the tests that failed in the last run.")
    parser.add_argument("--most", type=int, default=3, help="how many may have failed")
    main(parser.parse_args().most)
