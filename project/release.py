"""What a release is made of, and whether it may be made.

python project/release.py check [TAG]     # VERSION, the tag and the changelog agree
python project/release.py notes           # the changelog's section of this version
python project/release.py maven FOLDER    # the folder has what Maven Central asks for
"""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION = (ROOT / "VERSION").read_text().strip()
# What Maven Central refuses a POM without.
_POM = ("name", "description", "url", "licenses", "developers", "scm")


def check(tag: str | None) -> list[str]:
    """The problems that prevent a release of this tag; without a tag, of any release."""
    found = []
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", VERSION):
        found.append(f"VERSION is {VERSION!r}, expected a version such as 1.2.3 or 1.2.3rc1")
    if tag is not None and tag != f"v{VERSION}":
        found.append(f"the tag is {tag}, but VERSION is {VERSION}: expected v{VERSION}")
    if tag is not None and not notes():
        found.append(f"CHANGELOG.md has no section `## [{VERSION}] - YYYY-MM-DD`: name the unreleased one so")
    if tag is None and not (notes() or section("Unreleased")):
        found.append("CHANGELOG.md tells nothing of what would be released")
    return found


def notes() -> str:
    """The changelog's section of this version; empty if there is none."""
    return section(rf"{re.escape(VERSION)}\] - \d{{4}}-\d\d-\d\d", "")


def section(name: str, end: str = r"\]") -> str:
    found = re.search(
        rf"^## \[{name}{end}\n(.*?)(?=^## \[|\Z)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE | re.DOTALL
    )
    return found[1].strip() if found else ""


def check_maven(folder: Path) -> list[str]:
    """What Maven Central would refuse of a folder that sbt has published to."""
    base = f"safetensors-spark_2.13-{VERSION}"
    (pom,) = folder.rglob(f"{base}.pom")
    found = [
        f"{pom.parent}/{base}{end} is missing"
        for end in (".jar", "-sources.jar", "-javadoc.jar")
        if not (pom.parent / f"{base}{end}").is_file()
    ]
    tree = ET.parse(pom).getroot()
    space = tree.tag.removesuffix("project")
    found += [f"{pom} has no <{name}>" for name in _POM if tree.find(f"{space}{name}") is None]
    for dependency in tree.iter(f"{space}dependency"):
        scope = dependency.findtext(f"{space}scope")
        artifact = dependency.findtext(f"{space}artifactId")
        if scope != "provided" and artifact != "scala-library":
            found.append(f"{pom}: {artifact} is not provided, but the jar has no dependency of its own")
    return found


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["check", *tag]:
            problems = check(tag[0] if tag else None)
        case ["notes"]:
            problems = [] if notes() else [f"CHANGELOG.md has no section of {VERSION}"]
            print(notes())
        case ["maven", place]:
            problems = check_maven(Path(place))
        case _:
            sys.exit(__doc__)
    sys.exit("\n".join(problems) or None)
