"""`python -m curatec.runtime.cli`: the same as `curatec`."""

from curatec.runtime.cli import main

if __name__ == "__main__":
    main()
