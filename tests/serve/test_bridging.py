"""Results that another thread makes arrive, all of them, each where it belongs."""

import asyncio
import threading
from concurrent.futures import Future

import pytest

from caveat.serve.bridging import Bridge


def test_many_results_arrive():
    async def waited():
        bridge, futures = Bridge(), [Future() for _ in range(2000)]

        def fulfil():
            for number, future in enumerate(futures):
                future.set_result(number)

        thread = threading.Thread(target=fulfil)
        waits = [asyncio.create_task(bridge.wait(f)) for f in futures]
        thread.start()
        found = await asyncio.wait_for(asyncio.gather(*waits), 10)
        thread.join()
        return found

    assert asyncio.run(waited()) == list(range(2000))


def test_errors_arrive_and_who_gave_up_is_left_alone():
    async def waited():
        bridge, bad, late, good = Bridge(), Future(), Future(), Future()
        tasks = [asyncio.create_task(bridge.wait(f)) for f in (bad, late, good)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.sleep(0)
        bad.set_exception(ValueError("so"))
        late.set_result(1)
        good.set_result(2)
        with pytest.raises(ValueError, match="so"):
            await tasks[0]
        assert await tasks[2] == 2

    asyncio.run(waited())
