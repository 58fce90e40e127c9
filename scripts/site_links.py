"""A hook of mkdocs: links from docs/ to the rest of the checkout lead to the repository, where these files are read."""

import posixpath
import re
from typing import Any

_LINK = re.compile(r"(?<=\]\()(\.\./[^)#\s]+)")


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """What mkdocs asks of each page."""
    return rewritten(markdown, page.file.src_uri, config["repo_url"])


def rewritten(markdown: str, page: str, repository: str) -> str:
    """The text of a page, whose path is given from docs/ on."""

    def target(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), found[1]))
        is_inside = path == "docs" or path.startswith("docs/")
        is_folder_of_pages = is_inside and not posixpath.splitext(path)[1]
        if is_inside and not is_folder_of_pages:
            return found[1]
        return f"{repository.rstrip('/')}/blob/main/{path}"

    return _LINK.sub(target, markdown)
