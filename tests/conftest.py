"""What every test can ask for, and what a run has to keep: see the plugins."""

from hypothesis import settings

# How long an example takes says more of the machine than of the code. The profiles differ in `support.examples`.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None)
settings.load_profile("dev")

pytest_plugins = ["pytester", "testbed.fixtures", "testbed.image_fixtures", "testbed.rules", "testbed.tables"]
