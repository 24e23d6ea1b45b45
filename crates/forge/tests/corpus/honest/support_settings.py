# looks like: a shared module
# side effects: READ_ONLY
"""Settings that skills share."""

import os.path

LIMIT = 10


def base(path: str) -> str:
    return os.path.basename(path)
