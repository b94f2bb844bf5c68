"""Times as the command line prints them."""


def local_time(seconds: float) -> str:
    """Format seconds since 1970 as local date and time.

    >>> len(local_time(0.0)) > len("1970-01-01 00:00:00")
    True
    """
    from datetime import datetime

    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M:%S %Z}"
