"""Builds the documentation site in build/site.

    python -m docs.site.build

The pages are README.md, docs/, CONTRIBUTING.md, CHANGELOG.md and a page for each
command. They are copied to build/docs_source, with links that hold there.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from docs.site.navigation import navigation
from docs.site.page_links import broken_links, prose_lines
from docs.site.reference import reference_pages
from docs.site.report_picture import draw_report

ROOT = Path(__file__).resolve().parents[2]
WEBSITE = ROOT / "docs" / "site"
# Pages at the root of the repository, by their name on the site.
ROOT_PAGES = {
    "index.md": "README.md",
    "CHANGELOG.md": "CHANGELOG.md",
}
_LINK = re.compile(r"\[([^\[\]]*)\]\(([^()\s]+)\)")
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|#", re.IGNORECASE)


def write_sources(folder: Path) -> list[Path]:
    """Writes the pages and the settings of the site.

    Args:
      folder: takes `mkdocs.yml` and the pages in `docs_source/`, which is made anew.

    Returns:
      The pages.

    Raises:
      ValueError: a page of the navigation does not exist.
    """
    sources = folder / "docs_source"
    shutil.rmtree(sources, ignore_errors=True)
    pages = {
        name: site_page(ROOT / source, name) for name, source in ROOT_PAGES.items()
    }
    for path in sorted((ROOT / "docs").rglob("*.md")):
        name = path.relative_to(ROOT / "docs").as_posix()
        pages[name] = site_page(path, name)
    pages |= reference_pages()
    for name, text in pages.items():
        target = sources / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    shutil.copytree(WEBSITE / "assets", sources / "assets")
    nav = yaml.safe_dump({"nav": navigation(pages)}, sort_keys=False)
    settings = (WEBSITE / "mkdocs.yml").read_text(encoding="utf-8")
    (folder / "mkdocs.yml").write_text(f"{settings}\n{nav}", encoding="utf-8")
    return [sources / name for name in pages]


def site_page(path: Path, name: str) -> str:
    """The text of a page of the repository with links as the site needs them.

    A link to a file that is no page of the site becomes the path of that file.

    Args:
      path: the page.
      name: its path within the site.
    """
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    for number, _ in prose_lines(text):
        lines[number - 1] = _LINK.sub(
            lambda match: _rewritten(match, path, name), lines[number - 1]
        )
    return "\n".join(lines)


def _rewritten(match: re.Match[str], path: Path, name: str) -> str:
    shown, target = match[1], match[2]
    if _ELSEWHERE.match(target):
        return match[0]
    file, mark, anchor = target.partition("#")
    source = (path.parent / file).resolve().relative_to(ROOT).as_posix()
    page = _site_name(source)
    if not page:
        code = f"`{source}`"
        return code if shown.strip("`") == source else f"{shown} ({code})"
    up = "../" * name.count("/")
    # "docs/SCHEMA.md" as the text of a link names a file, not a page.
    shown = shown.removeprefix("docs/") if shown == source else shown
    return f"[{shown}]({up}{page}{mark}{anchor})"


def _site_name(source: str) -> str:
    """The path within the site of a file of the repository; "" if it has none."""
    for name, root_page in ROOT_PAGES.items():
        if source == root_page:
            return name
    if source.startswith("docs/site/assets/"):
        return source.removeprefix("docs/site/")
    is_page = source.startswith("docs/") and source.endswith(".md")
    return source.removeprefix("docs/") if is_page else ""


def build_site(folder: Path) -> Path:
    """Builds the site.

    Args:
      folder: takes the sources in `docs_source/`, the result in `site/`.

    Returns:
      The first page.

    Raises:
      ValueError: a page of the navigation does not exist, or a link is broken.
      subprocess.CalledProcessError: Zensical has failed; it has printed why.
    """
    pages = write_sources(folder)
    if faults := broken_links(pages, folder / "docs_source"):
        raise ValueError("broken links on the site:\n" + "\n".join(faults))
    command = [sys.executable, "-m", "zensical", "build", "--clean"]
    subprocess.run([*command, "--config-file", "mkdocs.yml"], cwd=folder, check=True)
    return folder / "site" / "index.html"


def main() -> int:
    """Draws the picture of a report, builds the site and prints its first page."""
    draw_report(WEBSITE / "assets" / "report.png")
    print(f"the site: {build_site(ROOT / 'build')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
