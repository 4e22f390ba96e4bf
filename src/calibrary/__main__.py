"""``python -m calibrary`` is the command line."""

from calibrary.cli import main

main()
