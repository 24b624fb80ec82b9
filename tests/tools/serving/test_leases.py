"""One holder a device, however many ask at once."""

import threading
from pathlib import Path
from typing import Any

from servewright.tools.serving.leases import Lease, Leases
from servewright.tools.serving.processes import identify


def test_many_ask_at_once_and_one_gets_it(state: Path) -> None:
    me = identify()
    got: list[Any] = []
    barrier = threading.Barrier(16)

    def ask(number: int) -> None:
        leases = Leases()
        barrier.wait()
        got.append(leases.acquire(["gpu:A", f"gpu:{number}"], what=f"ask {number}", owner=me, keeper=me, ttl_s=60))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [lease for lease in got if isinstance(lease, Lease)]
    assert len(got) == 16 and len(winners) == 1
    assert all(lease[0].id == winners[0].id for lease in got if not isinstance(lease, Lease))
    assert Leases().all() == (winners[0],)
    assert (state.stat().st_mode & 0o77) == 0, "for this user only"


def test_a_lease_ends_when_asked_back_or_expired() -> None:
    me, leases = identify(), Leases()
    asked: Any = leases.acquire(["cpu:0"], what="a", owner=me, keeper=me, ttl_s=60)
    expired: Any = leases.acquire(["cpu:1"], what="b", owner=me, keeper=me, ttl_s=-1)
    assert leases.wanted(asked.id) and not leases.wanted(expired.id) and not leases.wanted("nothing")
    leases.ask_release(asked.id)
    assert not leases.wanted(asked.id)
    leases.remove(asked.id)
    assert isinstance(leases.acquire(["cpu:0"], what="c", owner=me, keeper=me, ttl_s=60), Lease)
    assert "cpu:1 held by 'b'" in str(expired)
