"""The last lags of groups in the console's memory: each user has its own, and few."""

import gc
import weakref

from aiosemel import SemelClient
from semel_console.views.group_view import LagSample
from semel_console.web.lag_samples import GROUPS_MAX, SAMPLES_MAX, LagSamples


def sample(number: int) -> LagSample:
    return LagSample(at_ms=number, lag=number, held_back=0)


def test_no_user_sees_a_sample_of_another_one() -> None:
    samples = LagSamples()
    ada, bob = SemelClient("127.0.0.1:9"), SemelClient("127.0.0.1:9")
    assert samples.note(ada, "reports", sample(1)) == (sample(1),)
    assert samples.note(bob, "reports", sample(2)) == (sample(2),)
    assert samples.note(ada, "reports", sample(3)) == (sample(1), sample(3))
    assert samples.note(bob, "others", sample(4)) == (sample(4),)


def test_the_samples_of_a_user_go_with_the_session() -> None:
    samples = LagSamples()
    ada = SemelClient("127.0.0.1:9")
    samples.note(ada, "reports", sample(1))
    gone = weakref.ref(ada)
    del ada
    gc.collect()
    assert gone() is None
    assert samples.note(SemelClient("127.0.0.1:9"), "reports", sample(2)) == (sample(2),)


def test_samples_are_few() -> None:
    samples = LagSamples()
    ada = SemelClient("127.0.0.1:9")
    for number in range(SAMPLES_MAX + 4):
        samples.note(ada, "reports", sample(number))
    kept = samples.note(ada, "reports", sample(SAMPLES_MAX + 4))
    assert [each.at_ms for each in kept] == list(range(5, SAMPLES_MAX + 5))
    for number in range(GROUPS_MAX):
        samples.note(ada, f"group-{number}", sample(number))
    assert samples.note(ada, "reports", sample(1)) == (sample(1),), "it was looked at long ago"
