"""The limits of names, sizes, leases and pages, in one place: client, service and store keep to the same."""

import re

EXPERIMENT_NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
EXPERIMENT_NAME = re.compile(EXPERIMENT_NAME_PATTERN)
MAX_ARM_NAME_LENGTH = 200  # characters, of arms and fidelities in a request
MAX_TOKEN_NAME_LENGTH = 64
MAX_TOKEN_ID_LENGTH = 64
MAX_SESSIONS_PER_TOKEN = 20  # browsers that are signed in with it
SESSION_SECONDS = 7 * 24 * 3600.0
MAX_REQUEST_KEY_LENGTH = 200
MAX_PLAY_ID_LENGTH = 64
MAX_IMPORT_ID_LENGTH = 200
MAX_PLAY_NUMBER_DIGITS = 15
MAX_CLASS_NAME_LENGTH = 64  # of a policy or concentration in a request
MAX_NOTE_LENGTH = 10_000
MAX_WEIGHT = 10**12  # observations of one play
MAX_BLOCK_LENGTH = 100  # characters of the name of a block

DEFAULT_LEASE_SECONDS = 3600.0
MAX_LEASE_SECONDS = 1e9
REQUEST_KEYS_KEPT = 100_000  # at least, beside those of pending plays

MAX_ARMS = 1_000_000  # of an experiment made by a request
MAX_FIDELITIES = 1000
MAX_CELLS = 4_000_000  # arms times fidelities of an experiment made by a request; each takes some 32 bytes
MAX_RHO = 1e9
MAX_EVENT_NUMBER = 2**53  # JSON numbers are exact up to here

MAX_CONNECTIONS = 4096  # open at the same time, or fewer if the process may not open as many files
MAX_SILENT_SECONDS = 10.0  # until the header of a request is whole, and between parts of a body
MAX_ITEMS_PER_REQUEST = 1000  # plays, results or events
MAX_BODY_BYTES = 16 * 2**20  # an experiment of 100,000 named arms fits
MAX_BODY_LENGTH_DIGITS = 15  # of a Content-Length header
MAX_JSON_MEMBERS = 100  # of an object in a body; the largest that is understood has ten
MAX_FORM_FIELDS = 20
MAX_ARMS_NAMED = 5  # in a warning, before "and so many more"
MAX_VALUE_SHOWN = 80  # characters of a wrong value that a message repeats
