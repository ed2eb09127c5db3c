"""`precis doctor`: what an installation has, and what a command line lacks.

doctor     the checks in their order, the command line that is checked, the exit code
packages   Python, the packages of the extras that the command needs
needs      devices, buckets, engine, and what a command reads: each is opened as the
           job opens it
findings   a finding, as a line and as JSON
"""
