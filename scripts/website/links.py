"""Links from docs/ to the rest of the checkout, which lead to the repository in the site."""

import posixpath
import re
from typing import Final

_LINK: Final = re.compile(r"(?<=\]\()(\.\./[^)#\s]+)")


def absolute(markdown: str, page: str, repository: str) -> str:
    """Return the text of a page, whose path is given from docs/ on, with such links absolute."""

    def target(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), found[1]))
        is_inside = path == "docs" or path.startswith("docs/")
        is_folder_of_pages = is_inside and not posixpath.splitext(path)[1]
        if is_inside and not is_folder_of_pages:
            return found[1]
        return f"{repository.rstrip('/')}/blob/main/{path}"

    return _LINK.sub(target, markdown)
