"""New ids: as Kafka shows them."""

import base64
import re
from random import Random

from semel_coordinator.controller.rpc.new_ids import new_id


class Numbers(Random):
    """Gives these numbers."""

    def __init__(self, *numbers: int) -> None:
        super().__init__(0)
        self._numbers = list(numbers)

    def getrandbits(self, k: int, /) -> int:
        assert k == 128
        return self._numbers.pop(0)


def test_an_id_is_a_uuid_in_22_characters_that_are_safe_everywhere() -> None:
    text = new_id(Random(1))
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", text)
    assert len(base64.urlsafe_b64decode(text + "==")) == 16


def test_no_id_looks_like_an_option_of_a_command() -> None:
    assert new_id(Numbers(0xF8 << 120, 0)) == new_id(Numbers(0))
