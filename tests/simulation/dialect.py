"""Messages as processes of an older release read and write them: they drop unknown fields."""

from collections.abc import Callable

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass


class Dialect:
    """The messages of a release, by its descriptor set."""

    def __init__(self, descriptors: bytes, speaks: Callable[[str], bool]) -> None:
        """``speaks`` says of a process, by its name, whether it is of that release."""
        self._pool = DescriptorPool()
        for file in FileDescriptorSet.FromString(descriptors).file:
            self._pool.Add(file)
        self._speaks = speaks
        self._types: dict[str, type[Message]] = {}

    def knows(self, path: str) -> bool:
        """Whether the release has an RPC, by its path."""
        service, method = path.strip("/").split("/")
        try:
            found = self._pool.FindServiceByName(service)
        except KeyError:
            return False
        return method in found.methods_by_name

    def spoken_at(self, *names: str) -> bool:
        """Whether one of these processes is of that release."""
        return any(map(self._speaks, names))

    def through(self, message: Message) -> bytes:
        """Return a message as such a process reads or writes it."""
        older = self._type(message.DESCRIPTOR.full_name).FromString(message.SerializeToString())
        older.DiscardUnknownFields()
        return older.SerializeToString()

    def _type(self, name: str) -> type[Message]:
        if name not in self._types:
            self._types[name] = GetMessageClass(self._pool.FindMessageTypeByName(name))
        return self._types[name]
