"""What stands in front of the handlers of a service: may the caller, is it who it says, how much.

``answer()`` asks it for every request, unary or framed, if the service has one; without
authentication it has none. Permissions come from the table in ``needs``, rules from this instance's
copy of the cluster's metadata: a change counts here as soon as the copy has it.
"""

from google.protobuf.message import Message

from semel_common.errors import (
    ClusterAuthorizationFailedError,
    CoordinatorNotAvailableError,
    GroupAuthorizationFailedError,
    SemelError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailedError,
    UnknownTopicIdError,
)
from semel_common.wire.methods import Method
from semel_runtime.access.acls import CLUSTER_NAME, Operation, ResourceType
from semel_runtime.access.authorizer import Authorizer, Question
from semel_runtime.access.denial_log import Denials, Denied
from semel_runtime.access.item_refusals import Refusals, is_abort, leave_out, show, split
from semel_runtime.access.producer_tokens import ProducerTokens
from semel_runtime.access.quotas import Quotas
from semel_runtime.access.resource_names import Ref, any_at, is_given, refs_at
from semel_runtime.access.rpc_permissions import NEEDS, Each, Ended, Needs, Shown, Whole
from semel_runtime.authentication.principal import Principal
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import ClusterImage
from semel_runtime.server.calls import Call, Endpoint
from semel_runtime.server.limits.list_turns import ListTurns, pause
from semel_runtime.server.limits.long_polls import MAX_WAIT, is_long_poll

_ERRORS: dict[ResourceType, type[SemelError]] = {
    ResourceType.TOPIC: TopicAuthorizationFailedError,
    ResourceType.GROUP: GroupAuthorizationFailedError,
    ResourceType.TRANSACTIONAL_ID: TransactionalIdAuthorizationFailedError,
    ResourceType.CLUSTER: ClusterAuthorizationFailedError,
}


class Guard:
    """Guards the handlers of one instance."""

    def __init__(
        self,
        cluster: ClusterCopy,
        *,
        authorizer: Authorizer | None,
        tokens: ProducerTokens | None,
        quotas: Quotas | None,
        services_are_known: bool = False,
    ) -> None:
        """Guard by the given parts.

        Without an authorizer, every caller may call every RPC, except the RPCs between services
        where ``services_are_known``.
        """
        self._cluster = cluster
        self._authorizer = authorizer
        self._tokens = tokens
        self._quotas = quotas
        self._services_are_known = services_are_known
        self._image: ClusterImage | None = None
        self._denials = Denials()
        self._turns = ListTurns()

    async def answer(
        self, endpoint: Endpoint[Message, Message], request: Message, call: Call
    ) -> Message:
        """Answer what may be answered of a request; raises refusals, and what handlers raise."""
        principal = call.origin.principal
        if principal.is_cluster:
            return await endpoint.handler(request, call)
        self._look_at_image()
        quotas = self._quotas
        if quotas is None:
            return await self._answer(endpoint, request, call)
        path = endpoint.method.path
        quotas.admit(principal, path, request)
        try:
            response = await self._answer(endpoint, request, call)
        except SemelError:
            quotas.charge(principal, path, None)
            raise
        quotas.charge(principal, path, response)
        return response

    async def _answer(
        self, endpoint: Endpoint[Message, Message], request: Message, call: Call
    ) -> Message:
        tokens, method, principal = self._tokens, endpoint.method, call.origin.principal
        if tokens is not None:
            tokens.check(method, request, principal)
        if self._authorizer is None:
            if self._services_are_known:
                self._check_not_for_services(method, request, principal)
            response = await endpoint.handler(request, call)
        else:
            response = await self._in_turn(self._authorizer, endpoint, request, call)
        if tokens is not None:
            tokens.hand_out(method, request, response, principal)
        return response

    async def _in_turn(
        self,
        authorizer: Authorizer,
        endpoint: Endpoint[Message, Message],
        request: Message,
        call: Call,
    ) -> Message:
        """Answer a request for all resources in its caller's turn; any other request at once.

        A long poll waits before its turn.
        """
        wanted = NEEDS[endpoint.method.path].lists_all
        if wanted is None or not is_given(request, wanted.when):
            return await self._authorized_still(authorizer, endpoint, request, call)
        others = type(request)()
        others.CopyFrom(request)
        for field in (wanted.when, *wanted.pages):
            others.ClearField(field)
        if not authorizer.may_describe_any(str(call.origin.principal), wanted.resource):
            return await self._authorized_still(authorizer, endpoint, others, call)
        if is_long_poll(endpoint.method) and is_given(request, MAX_WAIT):
            await self._authorized_still(authorizer, endpoint, others, call)
            request.ClearField(MAX_WAIT)
        async with self._turns.turn(call.origin):
            return await self._authorized_still(authorizer, endpoint, request, call)

    async def _authorized_still(
        self,
        authorizer: Authorizer,
        endpoint: Endpoint[Message, Message],
        request: Message,
        call: Call,
    ) -> Message:
        """Answer by the rules that hold when the answer leaves.

        A long poll whose rules have changed while it waited is asked again, without a wait. Other
        calls were decided when they came: a refusal would say that they were not done.
        """
        while True:
            rules = authorizer.acls
            response = await self._authorized(authorizer, endpoint, request, call)
            if not is_long_poll(endpoint.method):
                return response
            self._look_at_image()
            if authorizer.acls is rules:
                return response
            request.ClearField(MAX_WAIT)

    async def _authorized(
        self,
        authorizer: Authorizer,
        endpoint: Endpoint[Message, Message],
        request: Message,
        call: Call,
    ) -> Message:
        needs = NEEDS[endpoint.method.path]
        principal, denied = call.origin.principal, Denied()
        asking = _Asking(authorizer, self._cluster, principal, denied)
        self._check_not_for_services(endpoint.method, request, principal)
        try:
            refusals = asking.check(needs, request)
        finally:
            self._denials.log(str(principal), endpoint.method.name, denied)
        if needs.lists and not any(map(asking.may_describe_any, needs.lists)):
            response = endpoint.method.response()
        elif refusals is None:
            response = await endpoint.handler(asking.touching(needs, request), call)
        elif refusals.leaves_nothing and not needs.ask_anyway:
            response = endpoint.method.response()
        else:
            response = await endpoint.handler(refusals.allowed(needs.at_once), call)
        for clause in needs.clauses:
            if isinstance(clause, Shown) and (not clause.when or is_given(request, clause.when)):
                for _ in show(response, clause, asking.may_describe):
                    await pause()
        if refusals is not None:
            refusals.answer(response)
        return response

    def _check_not_for_services(
        self, method: Method[Message, Message], request: Message, principal: Principal
    ) -> None:
        """Refuse another caller what only the cluster's own services may ask."""
        needs = NEEDS[method.path]
        if needs.cluster_only or any(is_given(request, each) for each in needs.cluster_only_with):
            operation, denied = Operation.CLUSTER_ACTION.name, Denied()
            error = denied.add(
                ClusterAuthorizationFailedError(
                    f"{principal} has no permission {operation} on the cluster for {method.name}",
                    principal=str(principal),
                    operation=operation,
                )
            )
            self._denials.log(str(principal), method.name, denied)
            raise error

    def _look_at_image(self) -> None:
        """Take the rules of the newest image; of one with the same rules, decisions are kept."""
        image = self._cluster.image
        if image is self._image:
            return
        self._image = image
        authorizer = self._authorizer
        if image is not None and authorizer is not None and image.acls != authorizer.acls:
            authorizer.update(image.acls)
        if image is not None and self._quotas is not None:
            self._quotas.update(image.client_quotas)


class _Asking:
    """One principal's questions about one request."""

    def __init__(
        self, authorizer: Authorizer, cluster: ClusterCopy, principal: Principal, denied: Denied
    ) -> None:
        self._authorizer = authorizer
        self._cluster = cluster
        self._principal = str(principal)
        self._denied = denied
        self._known: dict[tuple[str, Ref], SemelError | None] = {}

    def check(self, needs: Needs, request: Message) -> Refusals | None:
        """Return which items are refused, if any; raises the refusal of the whole request."""
        if self._cluster.image is None:
            # Its rules are not known: what they would allow must not be refused for good.
            raise CoordinatorNotAvailableError(
                "this instance has not heard from the controller yet"
            )
        each_clauses: list[Each] = []
        for clause in needs.clauses:
            if isinstance(clause, Whole):
                self._require(clause, request)
            elif isinstance(clause, Ended):
                self._require_ended(clause, request)
            elif isinstance(clause, Each):
                each_clauses.append(clause)
        return split(each_clauses, request, self._refused) if each_clauses else None

    def touching(self, needs: Needs, request: Message) -> Message:
        """Return a request without the participants at which its caller may not even abort."""
        for clause in needs.clauses:
            if isinstance(clause, Ended) and is_abort(clause, request):
                request = leave_out(request, clause, self._why_not_ended)
        return request

    def may_describe(self, resource: ResourceType, ref: Ref) -> bool:
        """Whether a resource may be seen."""
        return self._why_not(Operation.DESCRIBE, resource, ref) is None

    def may_describe_any(self, resource: ResourceType) -> bool:
        """Whether there can be a resource of a type that may be seen."""
        return self._authorizer.may_describe_any(self._principal, resource)

    def _require(self, clause: Whole, request: Message) -> None:
        given = not clause.when or is_given(request, clause.when)
        if not given and not any_at(request, clause.or_when):
            return
        if clause.unless and is_given(request, clause.unless):
            return
        refs = refs_at(request, clause.path) if clause.path else (Ref(CLUSTER_NAME),)
        for ref in refs:
            error = self._why_not(clause.operation, clause.resource, ref)
            if error is not None and not self._has_any(clause.or_any):
                raise self._denied.add(error)

    def _require_ended(self, clause: Ended, request: Message) -> None:
        if is_abort(clause, request):
            return
        for ref in refs_at(request, clause.path):
            error = self._why_not_ended(clause, ref)
            if error is not None:
                raise self._denied.add(error)

    def _why_not_ended(self, clause: Ended, ref: Ref) -> SemelError | None:
        if ref.topic_id and self._cluster.find_topic(ref.topic_id) is None:
            return None
        return self._why_not(clause.operation, clause.resource, ref)

    def _refused(self, clause: Each, ref: Ref) -> SemelError | None:
        known = (clause.items, ref)
        if known not in self._known:
            self._known[known] = self._why_refused(clause, ref)
        error = self._known[known]
        return None if error is None else self._denied.add(error)

    def _why_refused(self, clause: Each, ref: Ref) -> SemelError | None:
        error = self._why_not(clause.operation, clause.resource, ref)
        if error is not None and clause.or_cluster is not None:
            on_cluster = Ref(CLUSTER_NAME)
            if self._why_not(clause.or_cluster, ResourceType.CLUSTER, on_cluster) is None:
                return None
        return error

    def _has_any(self, wanted: tuple[Operation, ResourceType] | None) -> bool:
        return wanted is not None and self._authorizer.allows_any(self._principal, *wanted)

    def _why_not(self, operation: Operation, resource: ResourceType, ref: Ref) -> SemelError | None:
        """Return why something may not be done, or None.

        A caller that names a topic by its id, and may not describe the topic, gets the error of an
        unknown id.
        """
        if resource is ResourceType.TOPIC and ref.topic_id:
            topic = self._cluster.find_topic(ref.topic_id)
            if topic is None or not self._allows(Operation.DESCRIBE, resource, topic.name):
                if not ref.name or self._allows(operation, resource, ref.name):
                    return UnknownTopicIdError(f"no topic has the id {ref.topic_id!r}")
            elif not self._allows(operation, resource, topic.name):
                return self._refusal(operation, resource, topic.name)
            if not ref.name:
                return None
        if self._allows(operation, resource, ref.name):
            return None
        return self._refusal(operation, resource, ref.name)

    def _allows(self, operation: Operation, resource: ResourceType, name: str) -> bool:
        return self._authorizer.allows(Question(self._principal, operation, resource, name))

    def _refusal(self, operation: Operation, resource: ResourceType, name: str) -> SemelError:
        kind = resource.name.lower().replace("_", " ")
        what = f"{kind} {name!r}" if resource is not ResourceType.CLUSTER else "the cluster"
        return _ERRORS[resource](
            f"{self._principal} has no permission {operation.name} on {what}",
            principal=self._principal,
            operation=operation.name,
        )
