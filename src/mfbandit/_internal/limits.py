"""The limits of names, sizes, leases and pages, in one place: client, service and store keep to the same."""

import re

EXPERIMENT_NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
EXPERIMENT_NAME = re.compile(EXPERIMENT_NAME_PATTERN)
MAX_TOKEN_NAME_LENGTH = 64
MAX_REQUEST_KEY_LENGTH = 200
MAX_PLAY_NUMBER_DIGITS = 15

DEFAULT_LEASE_SECONDS = 3600.0
REQUEST_KEYS_KEPT = 100_000  # at least, beside those of pending plays

MAX_ITEMS_PER_REQUEST = 1000  # plays, results or events
MAX_BODY_BYTES = 16 * 2**20  # an experiment of 100,000 named arms fits
