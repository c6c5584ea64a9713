"""What an engine had otherwise than it should, and whether it has been mended."""

from collections.abc import Sequence

from sellerwatch.entry.console.tables import put_json, say
from sellerwatch.entry.console.text import count
from sellerwatch.ports.layout import Deviation


def tell(found: Sequence[Deviation], right: str, *, is_mended: bool, as_json: bool) -> None:
    """A line for each; `right` says that there was none."""
    if as_json:
        put_json([{"name": one.name, "said": one.said, "mended": is_mended} for one in found])
        return
    for one in found:
        say(f"{one.name}: {one.said}")
    if not found:
        say(right)
    elif is_mended:
        say(f"{count(len(found), 'thing')} mended")
    else:
        say(f"{count(len(found), 'thing')} to mend: the same without --dry-run does it")
