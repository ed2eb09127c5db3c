"""Checks Python and the packages against the bounds of the installed distribution, and
knows the extras that commands need.
"""

import importlib.metadata
import re
from collections.abc import Iterator

from packaging.requirements import Requirement

from precis.model.config import DISTRIBUTION, install_command

# The extras of pyproject.toml that a command always needs.
COMMAND_EXTRAS = {
    **dict.fromkeys(("prepare", "summarize", "evaluate"), ("beam",)),
    "train-summarizer": ("beam", "train"),
    **dict.fromkeys(("train", "train-selector", "train-keyphrases"), ("train",)),
    **dict.fromkeys(("import", "export"), ("train",)),
    "attention": ("train", "report"),
}
# The distributions of packages that have another name.
_DISTRIBUTIONS = {"sklearn": "scikit-learn"}


def missing_package(error: ModuleNotFoundError) -> tuple[str, str] | None:
    """The missing package, and what installs it; None if no extra has it."""
    package = (error.name or "").partition(".")[0]
    wanted = _DISTRIBUTIONS.get(package, package.replace("_", "-"))
    pattern = re.compile(rf"{wanted}(?![\w-]).*extra == .(\w+)")
    lines = importlib.metadata.requires(DISTRIBUTION) or ()
    extras = [found[1] for found in map(pattern.match, lines) if found]
    if not package or not extras:
        return None
    return f"{package} is not installed", install_command(extras[0])


def offered_extras() -> list[str]:
    """The extras of the installed distribution, except `all`."""
    offered = importlib.metadata.metadata(DISTRIBUTION).get_all("Provides-Extra") or []
    return [name for name in offered if name != "all"]


def wrong_packages(extra: str, name: str = DISTRIBUTION) -> Iterator[str]:
    """The problems with the packages of an extra of a distribution; with "", of the
    packages that it always needs.
    """
    for line in importlib.metadata.requires(name) or ():
        requirement = Requirement(line)
        marker = requirement.marker
        always = marker is None or marker.evaluate({"extra": ""})
        if always == bool(extra) or (marker and not marker.evaluate({"extra": extra})):
            continue
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            yield f"{requirement.name} is not installed"
            continue
        for inner in requirement.extras:
            if any(wrong_packages(inner, requirement.name)):
                yield f"{requirement.name}[{inner}] is incomplete"
        bounds = requirement.specifier
        if not bounds.contains(version, prereleases=True):
            yield f"{requirement.name} is {version}, but {name} needs {bounds}"
