"""`python -m demo`."""

try:
    from demo.cli import main

    code = main()
except KeyboardInterrupt:  # while loading, or while printing that it was interrupted
    code = 130
raise SystemExit(code)
