"""Type names that signatures share."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]

JSON: TypeAlias = Any
"""Any value that ``json.dumps`` accepts or ``json.loads`` returns."""
JSONObject: TypeAlias = dict[str, Any]
"""A JSON object."""
