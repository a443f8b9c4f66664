"""Producer tokens: good for one producer id, transactional id and principal."""

from pathlib import Path

import pytest

from semel_common.errors import InvalidConfigError, InvalidProducerTokenError
from semel_runtime.access.producer_tokens import ProducerTokens, read_secrets
from semel_runtime.authentication.principal import Principal

OLD, NEW = b"o" * 32, b"n" * 32
ALICE, BOB = Principal(name="alice"), Principal(name="bob")


def test_a_token_is_good_for_whom_it_was_made() -> None:
    tokens = ProducerTokens((OLD,))
    tokens.verify(tokens.make(7, "t", ALICE), 7, "t", ALICE)


@pytest.mark.parametrize(
    ("producer_id", "transactional_id", "principal"),
    [(8, "t", ALICE), (7, "u", ALICE), (7, "", ALICE), (7, "t", BOB)],
)
def test_a_token_is_good_for_no_other_user(
    producer_id: int, transactional_id: str, principal: Principal
) -> None:
    tokens = ProducerTokens((OLD,))
    with pytest.raises(InvalidProducerTokenError):
        tokens.verify(tokens.make(7, "t", ALICE), producer_id, transactional_id, principal)


def test_no_two_producers_have_the_same_text() -> None:
    tokens = ProducerTokens((OLD,))
    assert tokens.make(1, "ab", Principal(name="c")) != tokens.make(1, "a", Principal(name="bc"))
    assert tokens.make(1, "1", Principal(name="c")) != tokens.make(11, "", Principal(name="c"))


@pytest.mark.parametrize("token", [b"", b"x", b"\0" * 32])
def test_a_malformed_token_is_refused(token: bytes) -> None:
    with pytest.raises(InvalidProducerTokenError):
        ProducerTokens((OLD,)).verify(token, 7, "t", ALICE)


def test_a_secret_is_changed_without_a_producer_noticing() -> None:
    before = ProducerTokens((OLD,))
    known, changed = ProducerTokens((OLD, NEW)), ProducerTokens((NEW, OLD))
    token = before.make(7, "t", ALICE)
    assert known.make(7, "t", ALICE) == token
    changed.verify(token, 7, "t", ALICE)
    known.verify(changed.make(7, "t", ALICE), 7, "t", ALICE)
    with pytest.raises(InvalidProducerTokenError):
        ProducerTokens((NEW,)).verify(token, 7, "t", ALICE)


def test_secrets_are_lines_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "secrets"
    path.write_text(f"{'n' * 32}\n{'o' * 32}\n")
    path.chmod(0o600)
    assert read_secrets(path) == (NEW, OLD)


@pytest.mark.parametrize(
    "content", ["", "short\n", "x" * 32 + "\n" + "y" * 31, "\n".join(["z" * 32] * 3)]
)
def test_a_file_of_wrong_secrets_is_refused_without_showing_them(
    tmp_path: Path, content: str
) -> None:
    path = tmp_path / "secrets"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(InvalidConfigError) as refusal:
        read_secrets(path)
    assert not any(part in refusal.value.message for part in content.split())


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match="FileNotFoundError"):
        read_secrets(tmp_path / "missing")


def test_secrets_that_others_may_read_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "secrets"
    path.write_text("s" * 32)
    path.chmod(0o440)
    assert len(read_secrets(path)) == 1
    path.chmod(0o644)
    with pytest.raises(InvalidConfigError, match=rf"{path} can be read .*chmod o-rwx {path}"):
        read_secrets(path)
