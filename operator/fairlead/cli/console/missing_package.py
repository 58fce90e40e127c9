"""Packages that an installation lacks, as the line that tells which, and how to install it."""

import re
import sys
from typing import Final

_PACKAGES: Final = {
    "cel_expr_python": "cel-expr-python",
    "google": "protobuf",
    "prometheus_client": "prometheus-client",
    "re2": "google-re2",
    "yaml": "pyyaml",
}
"""Packages by the module that is imported, where the two have different names."""
_VERSIONS: Final = re.compile(r"[^\w.-].*")
"""Versions of a requirement such as `kopf<2,>=1.45`, which follow its name."""


def missing_package(error: BaseException) -> str | None:
    """Return the line about a package that is not installed; None for any other error, also for a module of ours."""
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return None
    module = error.name.partition(".")[0]
    if module == "fairlead" or module in sys.stdlib_module_names:
        return None
    package = _requirement(_PACKAGES.get(module, module.replace("_", "-")))
    return f"the package {package} is not installed: install it, as with `{sys.executable} -m pip install '{package}'`"


def _requirement(package: str) -> str:
    """Return a package with the versions that Fairlead asks for, if it asks for them itself."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        wanted = requires("fairlead") or []
    except PackageNotFoundError:
        wanted = []
    own = (one.partition(";")[0].strip() for one in wanted)
    return next((one for one in own if _VERSIONS.sub("", one).lower() == package), package)
