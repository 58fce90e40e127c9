"""Ask for the status until all is well, or it takes too long: after a restart no replica leads for a moment."""

import subprocess
import sys
import time

WITHIN_S = 90.0

end = time.monotonic() + WITHIN_S
while True:
    status = subprocess.run(
        [sys.executable, "-m", "fairlead", "status", *sys.argv[1:]], stdout=subprocess.PIPE, text=True
    )
    if status.returncode == 0 or time.monotonic() > end:
        break
    time.sleep(2)
print(status.stdout, end="")
sys.exit(status.returncode)
