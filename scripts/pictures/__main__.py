"""`make pictures`: draws the pictures of docs/pictures, except the recording of the demo."""

import sys

from pictures.chromium import CHROMIUM, draw
from pictures.subjects import FOLDER, SUBJECTS
from testbed.errors import ClusterError
from testbed.packages import ensure

try:
    ensure(CHROMIUM)
    for subject in SUBJECTS:
        draw(subject, FOLDER)
        sys.stderr.write(f"{FOLDER / subject.file}\n")
except ClusterError as error:
    sys.exit(f"error: {error}")
