# tries: hand a module out of a shared module; seen by: policy
# side effects: READ_ONLY
"""A shared module."""

import os as o

TOOLS = [o]
