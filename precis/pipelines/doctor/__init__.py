"""`precis doctor`: checks an installation, or whether a command can start.

doctor     the checks, in their order
packages   Python, the packages of each extra, and the extras that a command needs
"""
