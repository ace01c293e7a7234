"""The attempts of tests/bypass on a cluster: each set of rules is the policy of a namespace."""

import os
from itertools import count

from tests.bypass.corpus import corpus

ATTEMPTS = corpus()[:: int(os.environ.get("GPU_SHARE_ATTEMPTS_STEP", "1"))]
_numbers = count(1)
RULES = {rules: f"rules-{next(_numbers)}" for rules in sorted({one.rules for one in ATTEMPTS} - {""})}
