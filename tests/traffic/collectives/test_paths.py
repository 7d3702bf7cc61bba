"""The paths of a schedule, against its transfers one by one."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests import depth
from traffic.collectives import Activity, Paths, ScheduleBuilder

ends = st.integers(0, 3)


@settings(max_examples=depth.of(50), deadline=None)
@given(st.lists(st.tuples(ends, ends, st.integers(0, 2), st.integers(0, 1)), max_size=30))
def test_every_transfer_takes_its_path(transfers: list[tuple[int, int, int, int]]) -> None:
    builder = ScheduleBuilder(4)
    for name in ("one", "other"):
        builder.activity(Activity("flows", name))
    for src, dst, channel, activity in transfers:
        if src == dst:
            builder.work(src, activity=activity)
        else:
            builder.transfer(src, dst, 1, activity=activity, channel=channel)
    paths = Paths.taken(builder.build())

    last = {each[:3]: each[3] for each in transfers if each[0] != each[1]}
    assert [(paths[n], paths.activity[n]) for n in range(len(paths))] == sorted(last.items())
    for taken, (src, dst, channel, _) in zip(paths.of, transfers, strict=True):
        assert taken == -1 if src == dst else paths[taken] == (src, dst, channel)
