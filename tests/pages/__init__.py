"""Documents in the marketplace's shapes, for tests: invented content, the furniture of real pages around it.

Each builder gives bytes. `changes` are put into the business module (of a DETAIL) or the entry (of a list) under the
marketplace's own names; `LEFT_OUT` as a value removes the key.
"""

from pages.items import LEFT_OUT, a_list_item, a_mini_shop_page, a_search_item, a_search_page
from pages.products import a_detail, an_option, modules_of, options_of, page_of

__all__ = [
    "LEFT_OUT",
    "a_detail",
    "a_list_item",
    "a_mini_shop_page",
    "a_search_item",
    "a_search_page",
    "an_option",
    "modules_of",
    "options_of",
    "page_of",
]
