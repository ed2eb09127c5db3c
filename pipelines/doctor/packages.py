"""Python, and the packages of the extras that a command needs.

The bounds are those of setup.py, as the installed distribution `precis` has them.
"""

import importlib.metadata
import platform
from collections.abc import Collection, Iterator

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from precis.pipelines.doctor.findings import NOTE, OK, PROBLEM, Diagnosis

# Extras for developers, and those that hold the others.
_NOT_FOR_USERS = ("all", "dev", "docs", "parity", "services", "spark")


def check_packages(extras: Collection[str] | None) -> Iterator[Diagnosis]:
    """Checks Python and the packages.

    Args:
      extras: those that a command needs; None looks at all, of which none is needed.
    """
    distribution = importlib.metadata.metadata("precis")
    yield _check_python(distribution["Requires-Python"] or "")
    offered = distribution.get_all("Provides-Extra") or []
    looked_at = [name for name in offered if name not in _NOT_FOR_USERS]
    complete, any_wrong = [], False
    for extra in ("", *(looked_at if extras is None else sorted(extras))):
        wrong = list(_wrong_packages(extra))
        if not wrong and extra:
            complete.append(extra)
        elif wrong:
            is_needed = extras is not None or not extra
            any_wrong = any_wrong or is_needed
            yield Diagnosis(
                PROBLEM if is_needed else NOTE,
                "packages",
                f"{f'extra {extra}' if extra else 'precis itself'}: {', '.join(wrong)}",
                f"pip install 'precis[{extra}]'" if extra else "pip install 'precis'",
            )
    if not any_wrong:
        found = ", ".join(complete) or "no extra"
        version = importlib.metadata.version("precis")
        yield Diagnosis(
            OK, "packages", f"precis {version} with the packages of {found}"
        )


def _check_python(bounds: str) -> Diagnosis:
    version = platform.python_version()
    if SpecifierSet(bounds).contains(version, prereleases=True):
        return Diagnosis(OK, "python", f"Python {version}")
    return Diagnosis(
        PROBLEM,
        "python",
        f"this is Python {version}, and precis runs on {bounds}",
        "make an environment with a Python of that range and install precis there",
    )


def _wrong_packages(extra: str, name: str = "precis") -> Iterator[str]:
    """What is wrong with the packages that an extra of a distribution brings; with "",
    those that it always has.
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
            if any(_wrong_packages(inner, requirement.name)):
                yield f"{requirement.name}[{inner}] is not complete"
        bounds = requirement.specifier
        if not bounds.contains(version, prereleases=True):
            yield f"{requirement.name} is {version}, and {name} works with {bounds}"
