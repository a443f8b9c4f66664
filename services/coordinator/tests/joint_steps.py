"""Random steps of joint transactions: requests of every kind, and time that passes."""

from collections.abc import Callable

from hypothesis import strategies as st
from joint_harness import JointHarness, name_of
from transactions_harness import A0, A1

from semel_coordinator.transactions.machine import TransactionKey

JointStep = Callable[[JointHarness], object]
_versions = st.integers(1, 3)
_writers = st.sampled_from(["w", "x", "y"])
_runs = st.sampled_from(["run", "later"])


def _live(h: JointHarness) -> list[TransactionKey]:
    joint = h.machine._state.joints.by_id.get("joint")
    producers = h.machine._state.producers
    return [
        TransactionKey(each, producers[each].producer_epoch)
        for each in (joint.live if joint else ())
    ]


joint_steps: st.SearchStrategy[JointStep] = st.one_of(
    st.builds(
        lambda writer, version, run: lambda h: h.ask_to_join(writer, name_of(version, run=run)),
        *(_writers, _versions, _runs),
    ),
    st.builds(lambda version: lambda h: h.keep_alive(name_of(version)), _versions),
    st.builds(
        lambda version, end_id: (
            lambda h: h.commit_joint(
                {each: [A0] for each in _live(h)[:2]}, name_of(version), end_id=end_id
            )
        ),
        *(_versions, st.sampled_from("ab")),
    ),
    st.builds(lambda version: lambda h: h.abort_joint(None, name_of(version)), _versions),
    st.just(lambda h: h.add_to(_live(h)[0], A1) if _live(h) else None),
    st.just(lambda h: h.tick_joint(after_ms=30_000)),
)
