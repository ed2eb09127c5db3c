"""The packages: the folders `model` and `pipelines` are installed as `precis.model` and
`precis.pipelines`, which pyproject.toml cannot say of all below them.
"""

from setuptools import find_packages, setup

FOLDERS = {"precis.model": "model", "precis.pipelines": "pipelines"}
BELOW = [
    f"{name}.{package}"
    for name, folder in FOLDERS.items()
    for package in find_packages(folder)
]

setup(
    package_dir={"precis": "precis", **FOLDERS},
    packages=["precis", *FOLDERS, *BELOW],
)
