"""Pages of the site that are files outside of docs/: MkDocs calls `on_files`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File  # type: ignore[import-not-found]

ROOT = Path(__file__).parents[1]
# MkDocs loads this file alone.
sys.path.append(str(ROOT / "project"))

from notebooks import TUTORIALS, notebook  # noqa: E402

PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "format/dataset.md": "format/dataset.md",
    "format/format.md": "format/format.md",
    "format/staging.md": "format/staging.md",
}
_LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages, whose links lead to those of the site."""
    for source, place in PAGES.items():
        files.append(File.generated(config, place, content=linked((ROOT / source).read_text(), source)))
    files.append(File.generated(config, "examples.md", content=_examples()))
    for name in (ROOT / "format").glob("*.json"):
        files.append(File.generated(config, f"format/{name.name}", content=name.read_text()))
    for path in TUTORIALS.glob("*.md"):
        place = f"tutorials/{path.stem}.ipynb"
        files.append(File.generated(config, place, content=json.dumps(notebook(path.read_text()), indent=1)))
    return files


def _examples() -> str:
    """A page of all programs of `examples/`."""
    parts = ["# Examples", "Each program runs as it is. CI runs all of them."]
    for path in sorted((ROOT / "examples").glob("*.py")):
        code = path.read_text()
        title, _, rest = code.removeprefix('"""').partition("\n")
        install, _, rest = rest.partition('"""')
        parts.append(f"## {path.stem.replace('_', ' ').capitalize()}\n\n{title}\n\n```bash\n{install.strip()}\n```")
        parts += [
            f"`{more.name}`:\n\n```yaml\n{more.read_text().strip()}\n```"
            for more in sorted((ROOT / "examples").glob("*.yaml"))
            if more.name in code
        ]
        parts.append(f"```python\n{rest.strip()}\n```")
    return "\n\n".join(parts)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """The pages of docs/ link to files of the repository, which have other places in the site."""
    place = page.file.src_uri
    if place.startswith("tutorials/"):
        title, _, rest = markdown.partition("\n")
        markdown = f"{title}\n\n[This page as a notebook]({PurePosixPath(place).stem}.ipynb){{ download }}\n{rest}"
    return markdown if place in PAGES.values() else linked(markdown, f"docs/{place}")


def linked(text: str, source: str) -> str:
    """The text of a file of the repository, with links as they are between pages of the site."""

    def changed(found: re.Match[str]) -> str:
        target = _joined(PurePosixPath(source).parent, found[1])
        if (ROOT / target).is_dir():
            target = {"format": "format/dataset.md", "examples": "examples.md"}.get(target, target)
        place = PAGES.get(target, target.removeprefix("docs/"))
        here = PAGES.get(source, source.removeprefix("docs/"))
        up = "../" * (len(PurePosixPath(here).parts) - 1)
        # A licence is no page.
        return found[0] if target == "LICENSE" else f"]({up}{place}{found[2] or ''})"

    # In the repository pages are named by their files, and here by what they are about.
    text = re.sub(r"\[(?:docs|format)/([\w-]*)(?:\.md)?\]", lambda name: f"[{name[1].capitalize() or 'Formats'}]", text)
    text = re.sub(r"\[([A-Z]{4,})\.md\]", lambda name: f"[{name[1].capitalize()}]", text)
    return _LINK.sub(changed, text).replace("[Apache-2.0](LICENSE)", "Apache-2.0")


def _joined(folder: PurePosixPath, target: str) -> str:
    parts: list[str] = []
    for part in (folder / target).parts:
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
