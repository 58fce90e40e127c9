"""What every test can ask for, and what a run has to keep: see the plugins."""

pytest_plugins = ["pytester", "testbed.fixtures", "testbed.image_fixtures", "testbed.rules"]
