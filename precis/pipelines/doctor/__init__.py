"""`precis doctor`: what an installation has, and what a command line lacks.

doctor     the checks in their order, and what each finds
packages   Python, the packages of each extra, the extras that a command needs
"""
