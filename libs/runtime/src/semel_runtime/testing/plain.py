"""Values of machines as plain ones, for comparing what two of them answer."""

from msgspec import Struct

from semel_common.errors import SemelError


def plain(value: object) -> object:
    """Return values that are equal if they say the same; errors are not."""
    match value:
        case SemelError():
            return repr(value)
        case Struct():
            return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
        case tuple() | list():
            return [plain(each) for each in value]
        case _:
            return value
