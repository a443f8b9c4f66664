"""DescribeCluster: the cluster and its instances, for operators."""

from collections import Counter
from dataclasses import dataclass

from semel.coordinator.v1 import cluster_pb2 as wire
from semel_coordinator.controller.loops.instance_liveness import Liveness
from semel_coordinator.controller.machine import CONTROLLER, ControllerMachine, InstanceKey
from semel_coordinator.controller.rpc.metadata_messages import instance_to_wire, led_partitions
from semel_coordinator.controller.rpc.metadata_reader import MetadataReader
from semel_runtime.cluster.metadata_image import Instance
from semel_runtime.cluster.metadata_serde import layout_to_wire, shortage_to_wire
from semel_runtime.server.calls import Call


@dataclass(frozen=True, slots=True)
class ClusterDescriber:
    """Answers DescribeCluster."""

    reader: MetadataReader
    controller: ControllerMachine
    liveness: Liveness

    async def describe_cluster(
        self, _request: wire.DescribeClusterRequest, call: Call
    ) -> wire.DescribeClusterResponse:
        """Describe the cluster for operators."""
        return await self.reader.read(lambda: self._response(call.origin.listener))

    def _response(self, listener: str) -> wire.DescribeClusterResponse:
        image = self.reader.image()
        led = led_partitions(self.reader.cluster, image)
        return wire.DescribeClusterResponse(
            cluster_id=image.cluster_id,
            version=image.version,
            layout=layout_to_wire(image.layout),
            instances=[self._describe(instance, listener, led) for instance in image.instances],
            topic_count=len(image.topics),
            partition_count=sum(len(topic.partitions) for topic in image.topics),
        )

    def _describe(
        self, instance: Instance, listener: str, led: Counter[InstanceKey]
    ) -> wire.InstanceDescription:
        key = InstanceKey(instance.role, instance.instance_id)
        shortage = self.liveness.shortage_of(key)
        return wire.InstanceDescription(
            instance=instance_to_wire(instance, listener=listener),
            claim_epoch=self.controller.claim_epoch_of(key),
            last_registered_ms=self.liveness.last_registered_ms(key),
            leader_partitions=led[key],
            controller=key == CONTROLLER,
            disk_shortage=None if shortage is None else shortage_to_wire(shortage),
        )
