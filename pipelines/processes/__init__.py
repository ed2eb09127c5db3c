"""Processes of this machine: which there are, how they end, what one of them owns.

interruption      Ctrl-C and SIGTERM end a command within five seconds
descendants       the processes below this one
process_identity  tells a process from others with its pid
lock_file         a file that one process at a time owns
"""
