"""Checks what ruff and mypy do not read: shell scripts, the Dockerfile, workflows, and what hosted services read."""

import re
from pathlib import Path

from release.project import ROOT, run, tool
from testbed import build
from testbed.versions import program

_SCRIPTS = (".ci", "scripts", "testbed", "tests")
_SHEBANG = re.compile(rb"#!.*\b(ba)?sh\n")
_SCHEMAS = {
    "github-issue-config": (".github/ISSUE_TEMPLATE/config.yml",),
    "github-issue-forms": (".github/ISSUE_TEMPLATE/bug.yml", ".github/ISSUE_TEMPLATE/change.yml"),
    "github-workflows": (".github/workflows/*.yml",),
    "renovate": ("renovate.json",),
}


def shell_scripts(checkout: Path = ROOT) -> list[Path]:
    """Return all files that a shell runs."""
    files = (path for folder in _SCRIPTS for path in sorted((checkout / folder).rglob("*")) if path.is_file())
    return [path for path in files if path.suffix != ".pyc" and _SHEBANG.match(_first_line(path))]


def _first_line(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.readline(80)


def main() -> None:
    """Run all checks; the first that finds something ends it."""
    run([tool("shellcheck"), *shell_scripts()])
    run([tool("hadolint"), "Dockerfile"])
    for schema, patterns in _SCHEMAS.items():
        files = [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]
        run([tool("check-jsonschema"), "--quiet", "--builtin-schema", f"vendor.{schema}", *files])
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    actionlint = build.build([program("actionlint")])["actionlint"]
    run([actionlint, "-shellcheck", tool("shellcheck"), "-pyflakes=", *workflows])
    run([tool("zizmor"), "--offline", "--quiet", "--no-progress", "--persona=pedantic", *workflows])
