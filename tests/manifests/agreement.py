"""Rules between the manifests and the code: settings, addresses, ports, health, ends."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from manifests.rendered import (
    MODULES,
    NAMESPACE,
    ROOT,
    Object,
    Objects,
    containers,
    environment,
    labels_of,
    policy_ports,
    ports,
)
from pyspark_semel.options import CA, CERTIFICATE, KEY, PROTOCOL
from semel_broker.config import BrokerSettings
from semel_common.wire.methods import BROKER, GROUP, TRANSACTIONS
from semel_coordinator.config import CoordinatorSettings
from semel_group.config import GroupSettings
from semel_runtime.cluster.metadata_image import Listener
from semel_runtime.config import ServiceSettings, parse_listeners
from semel_runtime.server.grpc_server import LIVENESS

SETTINGS: dict[str, type[ServiceSettings]] = {
    "coordinator": CoordinatorSettings,
    "broker": BrokerSettings,
    "group-coordinator": GroupSettings,
}
HEALTH = {"coordinator": TRANSACTIONS, "broker": BROKER, "group-coordinator": GROUP}
"""The health name of each service; every service that its code serves has one."""
PREFIX = "SEMEL_"
CLOSING_MS = 5_000
"""The time that is left after drain and grace, to close the journal in."""
_TELEMETRY = {
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "OTEL_TRACES_EXPORTER",
    "OTEL_TRACES_SAMPLER",
    "OTEL_TRACES_SAMPLER_ARG",
}
_OF_LIBPQ = {"PGSSLMODE", "PGSSLROOTCERT"}
"""Which the driver of PostgreSQL reads."""
_OF_THE_MANIFESTS = {"POD_NAME", "POD_NAMESPACE", "SERVICE"}
"""From which others are put together."""


def read_settings(objects: Objects, workload: Object, instance: int = 0) -> ServiceSettings:
    """Read the settings as a service does. Raises ValidationError, KeyError."""
    found = environment(objects, workload, instance=instance)
    given: dict[str, Any] = {
        name.removeprefix(PREFIX).lower(): value
        for name, value in found.items()
        if name.startswith(PREFIX)
    }
    return SETTINGS[workload["metadata"]["name"]](**given)


def services_run_their_program(objects: Objects) -> Iterator[str]:
    for service in objects.services():
        name = service["metadata"]["name"]
        command = service["spec"]["template"]["spec"]["containers"][0]["command"]
        if command != ["python3", "-m", MODULES[name]]:
            yield f"{name} runs {command}"


def settings_are_known(objects: Objects) -> Iterator[str]:
    for service in objects.services():
        name = service["metadata"]["name"]
        known = {f"{PREFIX}{field.upper()}" for field in SETTINGS[name].model_fields}
        others = _TELEMETRY | _OF_LIBPQ | _OF_THE_MANIFESTS
        for unknown in set(objects.settings(service)) - known - others:
            yield f"{name} knows no {unknown}"


def settings_are_taken(objects: Objects) -> Iterator[str]:
    """By the models that the services read them with, for every instance."""
    for service in objects.services():
        for instance in range(service["spec"]["replicas"]):
            try:
                settings = read_settings(objects, service, instance)
            except ValidationError as error:
                yield f"{service['metadata']['name']}-{instance}: {error}"
                continue
            if settings.instance_id != instance:
                yield f"{service['metadata']['name']}-{instance} is {settings.instance_id}"


def there_are_as_many_as_the_layout_says(objects: Objects) -> Iterator[str]:
    settings = read_settings(objects, objects.one("StatefulSet", "coordinator"))
    assert isinstance(settings, CoordinatorSettings)
    for name, count in (
        ("coordinator", settings.coordinators),
        ("group-coordinator", settings.group_coordinators),
    ):
        if objects.one("StatefulSet", name)["spec"]["replicas"] != count:
            yield f"{name}: {count} are in the settings"


def journals_are_on_the_volume(objects: Objects) -> Iterator[str]:
    """Or in a database, for all of them: then nothing else has to last."""
    in_a_database = bool(objects.of("Cluster"))
    for service in objects.services():
        name, templates = (
            service["metadata"]["name"],
            service["spec"].get("volumeClaimTemplates", ()),
        )
        if bool(read_settings(objects, service).journal_url) is not in_a_database:
            yield f"{name} and the others do not keep their journals in one kind of place"
        if in_a_database:
            if templates:
                yield f"{name} has a volume, which nothing is on"
            continue
        claims = {claim["metadata"]["name"] for claim in templates}
        mounts = service["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
        paths = [mount["mountPath"] for mount in mounts if mount["name"] in claims]
        folder = read_settings(objects, service).data_dir
        if not any(folder.is_relative_to(path) for path in paths):
            yield f"{name} keeps its journal in {folder}, which is no volume"


def addresses_lead_to_their_instance(objects: Objects) -> Iterator[str]:
    """Inside the cluster; and no two instances have one address, inside or outside."""
    seen: dict[str, str] = {}
    for service in objects.services():
        name = service["metadata"]["name"]
        for instance in range(service["spec"]["replicas"]):
            settings = read_settings(objects, service, instance)
            own = f"{name}-{instance}.{name}.{NAMESPACE}.svc"
            bound = {told.name: told for told in parse_listeners(settings.listeners)}
            for told in _advertised(settings):
                if told.address in seen:
                    yield f"{own} and {seen[told.address]} are both told to be at {told.address}"
                seen[told.address] = own
            for listener, place in settings.frame_places():
                if place is None or (listener.name == "internal" and place.host != own):
                    yield f"{own}: where its frames are is not told"
            inside = settings.advertised(tuple(bound.values()))[0]
            if (inside.name, inside.address) != ("internal", f"{own}:{bound['internal'].port}"):
                yield f"{own} is told to be at {inside}"


def the_controller_is_where_all_look_for_it(objects: Objects) -> Iterator[str]:
    coordinator = objects.one("StatefulSet", "coordinator")
    bound = parse_listeners(read_settings(objects, coordinator).listeners)
    address = read_settings(objects, coordinator).advertised(bound)[0].address
    for service in objects.services():
        if read_settings(objects, service).controller != address:
            yield f"{service['metadata']['name']} looks for it elsewhere than at {address}"


def clients_are_told_of_services_that_are_there(objects: Objects) -> Iterator[str]:
    there = {
        f"{service['metadata']['name']}:{port['port']}"
        for service in objects.of("Service")
        for port in service["spec"].get("ports", ())
    }
    for name, pod in objects.pods():
        for container in containers(pod):
            told = [
                v.get("value", "") for v in container.get("env", ()) if "BOOTSTRAP" in v["name"]
            ]
            told += [word for word in container.get("command", ()) if word.endswith(":9092")]
            for address in told:
                if address not in there:
                    yield f"{name} is told of {address}"
    for each in objects.services():
        endpoint = objects.settings(each).get("OTEL_EXPORTER_OTLP_ENDPOINT")
        if endpoint and endpoint.removeprefix("http://") not in there:
            yield f"{each['metadata']['name']} sends traces to {endpoint}"


def clients_show_a_certificate_where_one_is_asked(objects: Objects) -> Iterator[str]:
    """In mounted files, by the variables that `semel` reads, or by options of the connector."""
    asked = {
        objects.settings(service).get("SEMEL_SSL_CLIENT_AUTH") for service in objects.services()
    }
    if "required" not in asked:
        return
    for each in objects.of("SparkApplication"):
        yield from _pipeline_shows_none(each)
    for name, pod in objects.pods():
        is_client = labels_of(pod).get("semel-client") == "true"
        for container in containers(pod) if is_client else ():
            told = {each["name"]: each.get("value", "") for each in container.get("env", ())}
            mounted = {Path(each["mountPath"]) for each in container.get("volumeMounts", ())}
            for variable in ("SEMEL_TLS_CA", "SEMEL_TLS_CERT", "SEMEL_TLS_KEY"):
                if Path(told.get(variable, "")).parent not in mounted:
                    yield f"{name}: {container['name']} has no {variable}"


def _pipeline_shows_none(pipeline: Object) -> Iterator[str]:
    name, spec = pipeline["metadata"]["name"], pipeline["spec"]
    given = (word.removeprefix("--semel=").partition("=") for word in spec["arguments"])
    told = {option: value for option, _, value in given}
    if told.get(PROTOCOL) != "SSL":
        yield f"{name} does not speak TLS"
    for role in ("driver", "executor"):
        mounted = {Path(each["mountPath"]) for each in spec[role]["volumeMounts"]}
        for option in (CA, CERTIFICATE, KEY):
            if Path(told.get(option, "")).parent not in mounted:
                yield f"{name}: {role} has no {option}"


def reached_ports(objects: Objects, workload: Object) -> set[int]:
    """Return the ports at which others, but not the node itself, may reach a service."""
    settings = read_settings(objects, workload)
    listeners = [*parse_listeners(settings.listeners), *(p for p, _ in settings.frame_places())]
    found = {listener.port for listener in listeners if listener.host != "127.0.0.1"}
    metrics = settings.metrics_place()
    return found if metrics is None else {*found, metrics.port}


def ports_are_those_of_the_settings(objects: Objects) -> Iterator[str]:
    for service in objects.services():
        name, settings = service["metadata"]["name"], read_settings(objects, service)
        health = int(settings.health_listener.rpartition(":")[2] or 0)
        declared = set(ports(service["spec"]["template"]).values())
        wanted = {*reached_ports(objects, service), health}
        if declared != wanted:
            yield f"{name} declares {sorted(declared)}, its settings {sorted(wanted)}"


def policies_admit_exactly_the_ports_in_use(objects: Objects) -> Iterator[str]:
    policies = [each["spec"] for each in objects.of("NetworkPolicy")]
    for service in objects.services():
        template = service["spec"]["template"]
        mine = [spec for spec in policies if template in objects.selected(spec["podSelector"])]
        admitted = policy_ports([rule for spec in mine for rule in spec.get("ingress", ())])
        used = reached_ports(objects, service)
        if admitted != used:
            yield f"{service['metadata']['name']}: {sorted(admitted)} admitted, {sorted(used)} used"
        inside = {
            *(p.port for p in parse_listeners(read_settings(objects, service).listeners)[:1]),
            *(p.port for p, _ in read_settings(objects, service).frame_places()[:1]),
        }
        if not inside <= policy_ports([r for spec in mine for r in spec.get("egress", ())]):
            yield f"{service['metadata']['name']} may not reach the others"


def probes_ask_for_what_the_service_says(objects: Objects) -> Iterator[str]:
    for service in objects.services():
        name, settings = service["metadata"]["name"], read_settings(objects, service)
        container = service["spec"]["template"]["spec"]["containers"][0]
        health = int(settings.health_listener.rpartition(":")[2])
        for kind, asked in (
            ("startupProbe", LIVENESS),
            ("livenessProbe", LIVENESS),
            ("readinessProbe", HEALTH[name]),
        ):
            probe = container.get(kind, {}).get("grpc")
            if probe != {"port": health, "service": asked}:
                yield f"{name}: {kind} asks {probe}, not for {asked} at {health}"


def probes_have_patience(objects: Objects) -> Iterator[str]:
    for name, pod in objects.pods():
        for container in containers(pod):
            for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
                for what, number in container.get(kind, {}).items():
                    if isinstance(number, int) and number < 1:
                        yield f"{name}: {kind} has a {what} of {number}"


def ends_take_no_longer_than_they_may(objects: Objects) -> Iterator[str]:
    for service in objects.services():
        settings = read_settings(objects, service)
        grace_ms = service["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] * 1000
        if grace_ms < settings.shutdown_drain_ms + settings.shutdown_grace_ms + CLOSING_MS:
            yield f"{service['metadata']['name']} would be killed while it stops"


def logs_are_for_programs(objects: Objects) -> Iterator[str]:
    for service in objects.services():
        if read_settings(objects, service).log_format != "json":
            yield f"{service['metadata']['name']} does not log JSON"


def certificates_name_all_addresses(objects: Objects) -> Iterator[str]:
    """Where there are any."""
    for certificate in objects.of("Certificate"):
        name = certificate["metadata"]["name"]
        if name not in MODULES:
            continue
        covered = certificate["spec"]["dnsNames"]
        settings = read_settings(objects, objects.one("StatefulSet", name))
        for told in _advertised(settings):
            wildcard = "*." + told.host.partition(".")[2]
            if told.host not in covered and wildcard not in covered:
                yield f"the certificate of {name} does not cover {told.host}"


def nothing_is_open_where_there_are_certificates(objects: Objects) -> Iterator[str]:
    """Else it would be a cluster to play with, which says so."""
    if not objects.of("Certificate"):
        return
    for service in objects.services():
        name, settings = service["metadata"]["name"], read_settings(objects, service)
        if settings.insecure_listeners:
            yield f"{name} is open at {settings.insecure_listeners}"
        mounts = service["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
        for listener in parse_listeners(settings.listeners):
            files = settings.security_of(listener.name).tls_files()
            if files is None or not any(
                files.key.is_relative_to(mount["mountPath"]) for mount in mounts
            ):
                yield f"{name}: listener {listener.name} has no certificate"


def services_know_one_another_by_their_certificates(objects: Objects) -> Iterator[str]:
    """Where there are any."""
    all_certificates = objects.of("Certificate")
    certificates = [
        certificate
        for certificate in all_certificates
        if certificate["metadata"]["name"] in MODULES
    ]
    shown = sorted(
        f"User:{uri}" for certificate in certificates for uri in certificate["spec"].get("uris", ())
    )
    for service in objects.services() if certificates else ():
        known = read_settings(objects, service).cluster_principals.split(";")
        if sorted(known) != shown:
            yield f"{service['metadata']['name']} knows {known}, the certificates say {shown}"


def _advertised(settings: ServiceSettings) -> list[Listener]:
    told = [place for _, place in settings.frame_places() if place is not None]
    return [*settings.advertised(parse_listeners(settings.listeners)), *told]


def alerts_are_those_that_are_tested(objects: Objects) -> Iterator[str]:
    """Where Prometheus is told of metrics, it is told of the alerts too."""
    if objects.of("ServiceMonitor"):
        folder = ROOT / "observability"
        files = [folder / "alerts.yml", folder / "alerts-kubernetes.yml"]
        tested = [group for file in files for group in yaml.safe_load(file.read_text())["groups"]]
        if [each["spec"]["groups"] for each in objects.of("PrometheusRule")] != [tested]:
            yield "alerts are not those of observability/: run `make docs`"
