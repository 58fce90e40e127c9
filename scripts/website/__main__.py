"""`make site`: builds the site into build/site/html. Every problem is an error, such as a link that leads nowhere."""

import sys

from website.build import SiteError, build

try:
    site = build()
except SiteError as error:
    sys.exit(f"error: {error}")
sys.stderr.write(f"open {site / 'index.html'}\n")
