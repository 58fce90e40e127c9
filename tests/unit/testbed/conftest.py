from pathlib import Path

import pytest


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test's own, so that nothing of this machine's is seen or touched."""
    monkeypatch.setenv("FAIRLEAD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
