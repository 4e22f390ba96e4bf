"""``python -m calibrary`` runs the command line."""

from calibrary.cli import main

if __name__ == "__main__":
    main()
