"""`python -m demo`."""

try:
    from demo.cli import main

    code = main()
except KeyboardInterrupt:  # as it loads, or as it says that it was interrupted
    code = 130
raise SystemExit(code)
