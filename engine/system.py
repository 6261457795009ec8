"""Tell if this is Linux, or a system that gets POSIX and psutil calls only.

Linux-only calls stand in `keeper` and `sandbox`, behind this one question. PLAIT_PORTABLE=1 answers
it on Linux as macOS or a BSD would, so that the other way is tested where there is none of them.
"""

from __future__ import annotations

import os
import sys

PORTABLE = "PLAIT_PORTABLE"
IS_PORTABLE = sys.platform != "linux" or os.environ.get(PORTABLE) == "1"
OWN_DESCRIPTORS = "/dev/fd" if IS_PORTABLE else "/proc/self/fd"
"""A folder with an entry for each descriptor of the process that lists it."""
