from hypothesis import given
from hypothesis import strategies as st

from servewright.tools.traffic.walk import ladder_around, must_visit, next_step


def walk(reference: float, true_capacity: float) -> dict[int, bool]:
    ladder, kept = ladder_around(reference), {}
    while (index := next_step(ladder, reference, kept)) is not None:
        assert index not in kept, "no step is replayed twice"
        kept[index] = ladder[index] <= true_capacity
    return kept


@given(st.floats(0.1, 100), st.floats(0.45, 7.5))
def test_the_walk_ends_with_neighbours_around_the_capacity(reference: float, multiple: float) -> None:
    ladder = ladder_around(reference)
    kept = walk(reference, multiple * reference)
    highest = max(i for i, held in kept.items() if held)
    assert kept[highest + 1] is False
    assert ladder[highest] <= multiple * reference < ladder[highest + 1]
    assert len(kept) <= 14


@given(st.floats(0.1, 100))
def test_beyond_the_ladder_the_walk_ends_at_its_end(reference: float) -> None:
    size = len(ladder_around(reference))
    assert all(walk(reference, 100 * reference).values()) and size - 1 in walk(reference, 100 * reference)
    assert not any(walk(reference, 0.01 * reference).values()) and 0 in walk(reference, 0.01 * reference)


def test_the_reference_and_the_burst_are_always_visited() -> None:
    ladder = ladder_around(7.0)
    assert 7.0 in ladder
    visited = [ladder[i] / 7.0 for i in must_visit(ladder, 7.0)]
    assert 0.8 / 1.05 < visited[0] <= 0.8 and visited[1] == 1.0 and abs(visited[2] / 1.2 - 1) < 0.03 and 1.5 <= visited[3] < 1.5 * 1.05
    assert set(must_visit(ladder, 7.0)) <= set(walk(7.0, 7.0))


def test_what_is_visited_does_not_depend_on_the_order_of_the_record() -> None:
    ladder = ladder_around(5.0)
    kept = walk(5.0, 9.0)
    del kept[max(kept)]
    backwards = dict(reversed(list(kept.items())))
    assert next_step(ladder, 5.0, kept) == next_step(ladder, 5.0, backwards)
