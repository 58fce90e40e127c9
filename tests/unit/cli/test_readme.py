"""What the README shows is what happens."""

import re
import textwrap
from pathlib import Path

from fairlead.cli.checks import Checker
from fairlead.cli.report_text import as_text


def test_lint_says_what_the_readme_says() -> None:
    readme = (Path(__file__).parents[3] / "README.md").read_text()
    policy, said = re.findall(
        r"\n( {4}apiVersion: .*?)\n\n {4}\$ fairlead lint gpu-pool.yaml\n(.*?)\n\n", readme, re.DOTALL
    )[0]
    checker = Checker()
    checker.check("gpu-pool.yaml", textwrap.dedent(policy).encode())
    printed = list(as_text(checker.report, colour=False, verbose=False))
    wanted = textwrap.dedent(said).splitlines()
    assert printed[: len(wanted)] == wanted
