from pathlib import Path

import pytest

from testbed import packages, sandbox


def test_what_a_package_starts_services_with_does_nothing_while_it_is_installed(tmp_path: Path) -> None:
    if why := sandbox.obstacle():
        pytest.skip(f"no mount namespace here: {why}")
    log = tmp_path / "log"
    look = 'for one in $STARTERS; do cmp "$one" /bin/true && "$one" start containerd.service || exit 1; done; echo seen'
    assert packages._run(["/bin/sh", "-c", look], log) == 0
    assert log.read_text() == "seen\n"
    assert "deb-systemd-invoke" not in Path("/proc/self/mountinfo").read_text()


def test_a_command_that_fails_is_known_to_have_failed(tmp_path: Path) -> None:
    if why := sandbox.obstacle():
        pytest.skip(f"no mount namespace here: {why}")
    assert packages._run(["false"], tmp_path / "log") == 1
