"""Sellers: whose shop is crawled, how, and how often.

register ─▶ ACTIVE ◀── activate / deactivate ──▶ INACTIVE        (both idempotent)
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sellerwatch.domain.errors import Conflict, Invalid
from sellerwatch.domain.ids import checked_seller_id

INTERVAL_DAYS_MIN, INTERVAL_DAYS_MAX = 1, 30
NAME_MAX = 200


class SellerStatus(StrEnum):
    ACTIVE = "ACTIVE"
    INACTIVE = "INACTIVE"


class CrawlSource(StrEnum):
    """Which of the marketplace's two lists shows a seller's items."""

    MINI_SHOP = "MINI_SHOP"
    SEARCH = "SEARCH"


def checked_interval(days: int) -> int:
    if not INTERVAL_DAYS_MIN <= days <= INTERVAL_DAYS_MAX:
        raise Invalid("crawlingIntervalDays", days, f"{INTERVAL_DAYS_MIN} to {INTERVAL_DAYS_MAX}")
    return days


def checked_name(name: str) -> str:
    if not name.strip() or len(name) > NAME_MAX:
        raise Invalid("name", name, f"1 to {NAME_MAX} characters")
    return name


@dataclass(slots=True)
class Seller:
    seller_id: str
    name: str
    crawl_source: CrawlSource
    interval_days: int
    status: SellerStatus
    total_product_count: int
    created_at: datetime
    updated_at: datetime

    @classmethod
    def register(
        cls,
        seller_id: str,
        name: str,
        at: datetime,
        *,
        crawl_source: CrawlSource = CrawlSource.MINI_SHOP,
        interval_days: int = 1,
    ) -> "Seller":
        return cls(
            seller_id=checked_seller_id(seller_id),
            name=checked_name(name),
            crawl_source=crawl_source,
            interval_days=checked_interval(interval_days),
            status=SellerStatus.ACTIVE,
            total_product_count=0,
            created_at=at,
            updated_at=at,
        )

    @property
    def is_active(self) -> bool:
        return self.status is SellerStatus.ACTIVE

    def rename(self, name: str, at: datetime) -> None:
        self.name, self.updated_at = checked_name(name), at

    def change_interval(self, days: int, at: datetime) -> None:
        self.interval_days, self.updated_at = checked_interval(days), at

    def activate(self, at: datetime) -> bool:
        """Whether this changed anything."""
        return self._become(SellerStatus.ACTIVE, at)

    def deactivate(self, at: datetime) -> bool:
        return self._become(SellerStatus.INACTIVE, at)

    def record_product_count(self, count: int, at: datetime) -> None:
        if count < 0:
            raise Invalid("totalProductCount", count, "0 or more")
        self.total_product_count, self.updated_at = count, at

    def check_removable(self) -> None:
        if self.is_active:
            raise Conflict("SELLER_ACTIVE", f"seller {self.seller_id} is ACTIVE: deactivate it before removing it")

    def _become(self, status: SellerStatus, at: datetime) -> bool:
        if self.status is status:
            return False
        self.status, self.updated_at = status, at
        return True
