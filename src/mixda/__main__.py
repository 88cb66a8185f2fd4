"""``python -m mixda``: the command line."""

from mixda.cli import main

if __name__ == "__main__":
    main()
