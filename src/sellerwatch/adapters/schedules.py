"""The built-in schedule: the store itself says what is due, and the ticker looks. There is nobody else to tell."""

from sellerwatch.domain.outbox import ScheduleNotice


class BuiltinSchedules:
    """Fires nothing by itself; every change of a schedule is already where the ticker looks."""

    fires_itself = False

    async def announce(self, notice: ScheduleNotice) -> None:
        """Nothing to do: done."""
