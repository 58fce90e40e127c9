"""`make pictures`: draws the pictures of docs/pictures, except the recording of the demo.

With an argument, as of `make screenshots`, those whose names begin with it.
"""

import sys

from pictures.chromium import CHROMIUM, draw
from pictures.subjects import FOLDER, SUBJECTS
from testbed.errors import ClusterError
from testbed.packages import ensure

try:
    ensure(CHROMIUM)
    for subject in (each for each in SUBJECTS if each.name.startswith("".join(sys.argv[1:2]))):
        draw(subject, FOLDER)
        sys.stderr.write(f"{FOLDER / subject.file}\n")
except ClusterError as error:
    sys.exit(f"error: {error}")
