"""What may differ between two installations: the only reader of the environment. It knows nobody.

Promises: `load` gives a frozen `Settings` whose values can be used as they are, or raises `SettingsRefused` with one
line for each problem, all at once. The environment (`SELLERWATCH_…`) wins over the TOML file. No secret appears in a
line or a repr. Refuses: unknown names, empty values, addresses that are not what they should be.

    forms      what a value may be
    declared   every setting: name, form, default, meaning
    load       from the environment and the file; keys that were not given; the page of the docs
"""

from sellerwatch.settings.declared import PREFIX, SWEEPS, Settings
from sellerwatch.settings.forms import EventBridgeAddress, SqsAddress
from sellerwatch.settings.load import SettingsRefused, load, needed, settings_page, with_kept_keys

__all__ = [
    "PREFIX",
    "SWEEPS",
    "EventBridgeAddress",
    "Settings",
    "SettingsRefused",
    "SqsAddress",
    "load",
    "needed",
    "settings_page",
    "with_kept_keys",
]
