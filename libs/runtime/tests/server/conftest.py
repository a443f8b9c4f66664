"""What most tests of authentication begin with: the authorities of certificates and tokens."""

from pathlib import Path

import pytest
from security_harness import Authority, Issuer


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ours")


@pytest.fixture
def issuer(tmp_path: Path) -> Issuer:
    return Issuer(tmp_path / "keys.json")
