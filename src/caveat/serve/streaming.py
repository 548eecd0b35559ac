"""Server-sent events: an estimate after 8, 16, 32 … draws, until it is good enough."""

import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any, final

from caveat.serve.answers import Arrays, RowFeatures
from caveat.serve.asking import FEWEST, Settings
from caveat.serve.refusing import RefusedError
from caveat.serve.rows import told, worst_error
from caveat.serve.service import Service


@final
@dataclass(frozen=True)
class EventStream:
    """The steps of one stream."""

    service: Service
    name: str
    features: RowFeatures
    wanted: list[str]
    settings: Settings
    good: float

    async def events(
        self, found: Arrays, last: int, budget: float | None
    ) -> AsyncIterator[str]:
        """One for each step; the last says that it is the last, and why."""
        model, start = self.service.models[self.name], time.monotonic()
        number = self.settings.n_draws or FEWEST
        while True:
            error, before = worst_error(model, found), time.monotonic() - start
            reason = None
            if error <= self.good:
                reason = "good enough"
            elif number >= last:
                reason = "draws"
            elif budget is not None and before > 0.5 * budget:
                reason = "budget"
            own: dict[str, Any] = {
                "draws": number,
                "error": error,
                "tolerance": self.good,
            }
            own |= {"done": reason is not None, "reason": reason}
            own |= {"notes": list(self.features.notes)}
            yield _event(own | {"predictions": told(model, found)})
            if reason is not None:
                return
            number = min(2 * number, last)
            settings = replace(self.settings, n_draws=number)
            try:
                found = await self.service.answer(
                    self.name, self.features.x, settings, self.wanted
                )
            except RefusedError as refusal:
                yield _event({"error": str(refusal), "done": True}, "error")
                return


def _event(content: dict[str, Any], kind: str = "estimate") -> str:
    return f"event: {kind}\ndata: {json.dumps(content, allow_nan=False)}\n\n"
