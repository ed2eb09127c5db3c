"""The package is `precis`; the links `model` and `pipelines` to its folders are not
installed.
"""

from setuptools import find_packages, setup

setup(packages=find_packages(include=["precis", "precis.*"]))
