"""`python -m sellerwatch` is `sellerwatch`."""

from sellerwatch.entry.cli import main

if __name__ == "__main__":
    main()
