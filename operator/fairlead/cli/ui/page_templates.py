"""Templates of the page. Every text is escaped twice over: HTML by jinja2, and characters that hide or reorder text."""

from importlib.resources import files
from typing import Any, Final

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from fairlead.cli.console.output import clean, pluralize
from fairlead.cli.ui.first_glance import shadow_sentence
from fairlead.cli.ui.policy_effects import coverage, pod_counts

STATIC: Final = {"page.css": "text/css", "page.js": "text/javascript"}


def page_templates() -> Environment:
    """Return the environment with the templates of the page."""
    folder = files("fairlead.cli.ui") / "templates"
    sources = {path.name: path.read_text("utf-8") for path in folder.iterdir() if path.name.endswith(".html")}
    environment = Environment(
        loader=DictLoader(sources),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["lines"] = visible_lines
    environment.globals |= {"pluralize": pluralize, "coverage": coverage, "pod_counts": pod_counts}
    environment.globals["shadow_sentence"] = shadow_sentence
    return environment


def static_file(name: str) -> bytes:
    """Return the stylesheet or the script."""
    return (files("fairlead.cli.ui") / "templates" / name).read_bytes()


def visible(value: Any) -> Any:
    """Return a value of a template with control and bidirectional characters as escapes."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def visible_lines(text: str) -> Markup:
    """Return a text of several lines, escaped as all others, but for the ends of its lines and its tabs."""
    lines = text.replace("\r\n", "\n").split("\n")
    kept = ("".join(one if one == "\t" else clean(one) for one in line) for line in lines)
    return Markup("\n").join(kept)
