"""A controller that a test scripts: instances register, and follow the cluster's metadata."""

import asyncio

from semel.coordinator.v1 import cluster_pb2 as wire
from semel.coordinator.v1 import history_pb2 as history
from semel_common.errors import SemelError
from semel_common.wire.methods import METADATA, NOTE_AUDIT, REGISTER_INSTANCE
from semel_runtime.access.access_serde import acls_to_wire, quotas_to_wire
from semel_runtime.claims import JournalMark
from semel_runtime.cluster.controller_note import mark_to_wire
from semel_runtime.cluster.metadata_image import ClusterImage
from semel_runtime.cluster.metadata_serde import (
    internal_to_wire,
    layout_to_wire,
    listeners_to_wire,
    partitions_to_wire,
)
from semel_runtime.server.calls import Call, Handlers


class ScriptedController:
    """Answers metadata that a test sets, and refuses registrations that it names."""

    def __init__(self, image: ClusterImage) -> None:
        """Start with an image."""
        self.image = image
        self._changed = asyncio.Event()
        self.parked = asyncio.Event()
        """Set once a caller waits for a newer version."""
        self.refusal: SemelError | None = None
        """What registrations are answered; None: they are taken."""
        self.mark: JournalMark | None = None
        """The mark in each answer; None: no mark, as of an older release."""
        self.registrations: list[wire.RegisterInstanceRequest] = []
        """All that came."""
        self.registered = asyncio.Event()
        """Set with the first of them."""
        self.handlers = Handlers()
        """A test may add what else it wants the controller to answer."""
        self.handlers.add(METADATA, self._metadata)
        self.handlers.add(REGISTER_INSTANCE, self._register)
        self.handlers.add(NOTE_AUDIT, self._note_audit)
        self.audit: list[history.NoteAuditRequest] = []
        """What instances have brought into the audit."""
        self.audit_refusal: SemelError | None = None
        """What they are answered; None: it is noted."""

    def publish(self, image: ClusterImage) -> None:
        """Let followers see a new image."""
        self.image = image
        self._changed.set()

    async def _register(
        self, request: wire.RegisterInstanceRequest, _: Call
    ) -> wire.RegisterInstanceResponse:
        self.registrations.append(request)
        self.registered.set()
        if self.refusal is not None:
            raise self.refusal
        response = wire.RegisterInstanceResponse(cluster_id=self.image.cluster_id)
        if self.mark is not None:
            response.controller.CopyFrom(mark_to_wire(self.mark))
        return response

    async def _note_audit(
        self, request: history.NoteAuditRequest, _: Call
    ) -> history.NoteAuditResponse:
        if self.audit_refusal is not None:
            raise self.audit_refusal
        self.audit.append(request)
        return history.NoteAuditResponse(number=len(self.audit))

    async def _metadata(self, request: wire.MetadataRequest, _: Call) -> wire.MetadataResponse:
        assert request.all_topics
        assert request.all_listeners
        while self.image.version <= request.known_version:
            self._changed.clear()
            self.parked.set()
            await self._changed.wait()
        response = metadata(self.image)
        if self.mark is not None:
            response.controller.CopyFrom(mark_to_wire(self.mark))
        return response


def metadata(image: ClusterImage) -> wire.MetadataResponse:
    """Write an image as the controller answers it."""
    return wire.MetadataResponse(
        cluster_id=image.cluster_id,
        version=image.version,
        layout=layout_to_wire(image.layout),
        instances=[
            wire.Instance(
                role=instance.role.value,  # type: ignore[arg-type]  # equal numbers
                instance_id=instance.instance_id,
                listeners=listeners_to_wire(instance.listeners),
                decommissioned=instance.decommissioned,
            )
            for instance in image.instances
        ],
        topics=[
            wire.Topic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=partitions_to_wire(topic),
                configs=dict(topic.configs),
            )
            for topic in image.topics
        ],
        acls=acls_to_wire(image.acls),
        client_quotas=quotas_to_wire(image.client_quotas),
        internal_partitions=map(internal_to_wire, image.internal_partitions),
    )
