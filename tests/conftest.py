"""What every test can ask for, and what a run has to keep: see `testbed.fixtures` and `testbed.rules`."""

pytest_plugins = ["pytester", "testbed.fixtures", "testbed.rules"]
