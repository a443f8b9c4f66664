"""Mistakes that an author of `k8s/` could make, each with the rule that must find it."""

from collections.abc import Callable
from typing import Any, NamedTuple

from manifests.rendered import Object, Objects

Change = Callable[[Objects], object]


class Mutation(NamedTuple):
    """A mistake in the objects of a cluster, and the rule that finds it."""

    what: str
    rule: str
    change: Change
    cluster: str = "dev"


def broker(objects: Objects) -> Any:  # noqa: ANN401 - JSON
    """Return the spec of a StatefulSet."""
    return objects.one("StatefulSet", "broker")["spec"]


def pod(objects: Objects) -> Any:  # noqa: ANN401 - JSON
    """Return the spec of its pods."""
    return broker(objects)["template"]["spec"]


def container(objects: Objects) -> Any:  # noqa: ANN401 - JSON
    """Return their container."""
    return pod(objects)["containers"][0]


def config(objects: Objects, prefix: str = "settings-") -> Any:  # noqa: ANN401 - JSON
    """Return the data of a ConfigMap, by the beginning of its name."""
    found = (
        each for each in objects.of("ConfigMap") if each["metadata"]["name"].startswith(prefix)
    )
    return next(found)["data"]


def variable(objects: Objects, name: str) -> Any:  # noqa: ANN401 - JSON
    """Return a variable of the container."""
    return next(each for each in container(objects)["env"] if each["name"] == name)


def spec(objects: Objects, kind: str, name: str) -> Any:  # noqa: ANN401 - JSON
    """Return the spec of an object."""
    return objects.one(kind, name)["spec"]


def volume(objects: Objects, name: str) -> Any:  # noqa: ANN401 - JSON
    """Return a volume of the pods."""
    return next(each for each in pod(objects)["volumes"] if each["name"] == name)


def console(objects: Objects) -> Any:  # noqa: ANN401 - JSON
    """Return the container of the console."""
    return spec(objects, "Deployment", "console")["template"]["spec"]["containers"][0]


def application(objects: Objects) -> Any:  # noqa: ANN401 - JSON
    """Return the container of the main job's application."""
    return spec(objects, "StatefulSet", "pizza-app")["template"]["spec"]["containers"][0]


def pipeline(objects: Objects) -> Any:  # noqa: ANN401 - JSON
    """Return the spec of the Spark pipeline."""
    return spec(objects, "SparkApplication", "pizza-income")


def executor(objects: Objects) -> Any:  # noqa: ANN401 - JSON
    """Return the spec of the pipeline's executors."""
    return pipeline(objects)["executor"]


def synchronous(objects: Objects) -> Any:  # noqa: ANN401 - JSON
    """Return the rule for the standbys that have to confirm writes to the database."""
    return spec(objects, "Cluster", "journal")["postgresql"]["synchronous"]


def without(objects: Objects, kind: str, name: str) -> None:
    """Take an object away."""
    objects.all.remove(objects.one(kind, name))


def _put(where: Object, **values: object) -> None:
    where.update(values)


_OTHER = {"matchLabels": {"app.kubernetes.io/name": "other"}}
_SERVICES = "services-admit-services-and-clients"

MUTATIONS = [
    # what a real API server refuses and schemas let pass
    Mutation("a selector of other pods", "selectors_select_their_own_pods",
             lambda o: _put(broker(o), selector=_OTHER)),
    Mutation("a spread over other pods", "selectors_select_their_own_pods",
             lambda o: _put(pod(o)["topologySpreadConstraints"][0], labelSelector=_OTHER)),
    Mutation("a mount of no volume", "mounts_are_volumes",
             lambda o: container(o)["volumeMounts"].append({"name": "x", "mountPath": "/x"})),
    Mutation("a volume that nobody mounts", "mounts_are_volumes",
             lambda o: pod(o)["volumes"].append({"name": "x", "emptyDir": {}})),
    Mutation("a quantity that is none", "quantities_are_quantities",
             lambda o: _put(container(o)["resources"]["requests"], cpu="abc")),
    Mutation("no request of memory", "quantities_are_quantities",
             lambda o: container(o)["resources"]["requests"].pop("memory")),
    Mutation("no limit of memory", "quantities_are_quantities",
             lambda o: container(o)["resources"]["limits"].pop("memory")),
    Mutation("a pod that fills its node's disk", "quantities_are_quantities",
             lambda o: application(o)["resources"]["limits"].pop("ephemeral-storage")),
    Mutation("a name that DNS does not take", "names_are_dns_labels",
             lambda o: _put(o.one("Service", "semel")["metadata"], name="Bad_Name")),
    Mutation("an unknown policy of starts", "instances_start_together_and_keep_volumes",
             lambda o: _put(broker(o), podManagementPolicy="Serial")),
    Mutation("a volume that goes with its instance", "instances_start_together_and_keep_volumes",
             lambda o: _put(broker(o)["persistentVolumeClaimRetentionPolicy"],
                            whenScaled="Delete")),
    Mutation("a port too high", "ports_are_numbers_of_ports",
             lambda o: _put(spec(o, "Service", "semel")["ports"][0], port=99_999)),
    Mutation("one port twice", "ports_are_numbers_of_ports",
             lambda o: _put(container(o)["ports"][1], containerPort=9092)),
    Mutation("a probe without patience", "probes_have_patience",
             lambda o: _put(container(o)["livenessProbe"], periodSeconds=-1)),
    Mutation("no Service named", "instances_have_a_headless_service",
             lambda o: broker(o).pop("serviceName")),
    # what schemas know
    Mutation("a field that there is not", "the_oldest_version_takes_it",
             lambda o: _put(pod(o), restartpolicy="Always")),
    Mutation("text for a number", "the_newest_version_takes_it",
             lambda o: _put(broker(o), replicas="three")),
    Mutation("an old API", "the_newest_version_takes_it",
             lambda o: _put(o.one("StatefulSet", "broker"), apiVersion="apps/v1beta1")),
    # what those know who define a kind
    Mutation("a certificate for longer, misspelt", "those_who_define_it_take_it",
             lambda o: _put(spec(o, "Certificate", "broker"), Duration="24h"), "prod"),
    Mutation("a certificate with a key of no kind", "those_who_define_it_take_it",
             lambda o: _put(spec(o, "Certificate", "broker")["privateKey"], algorithm="ecdsa"),
             "prod"),
    Mutation("an issuer that is not one", "those_who_define_it_take_it",
             lambda o: _put(o.of("Issuer")[0]["spec"], selfsigned={}), "prod"),
    Mutation("a rule without an expression", "those_who_define_it_take_it",
             lambda o: spec(o, "PrometheusRule", "semel")["groups"][0]["rules"][0].pop("expr"),
             "prod"),
    Mutation("a monitor that looks at nothing in particular", "those_who_define_it_take_it",
             lambda o: spec(o, "ServiceMonitor", "semel").pop("selector"), "prod"),
    Mutation("a database of text", "those_who_define_it_take_it",
             lambda o: _put(spec(o, "Cluster", "journal"), instances="3"), "ha"),
    Mutation("a storage class in the wrong place", "those_who_define_it_take_it",
             lambda o: _put(spec(o, "Cluster", "journal"), storageClass="fast"), "ha"),
    Mutation("a Spark of another language", "those_who_define_it_take_it",
             lambda o: _put(spec(o, "SparkApplication", "pizza-income"), type="Ruby"), "prod"),
    Mutation("a driver with a field that there is not", "those_who_define_it_take_it",
             lambda o: _put(spec(o, "SparkApplication", "pizza-income")["driver"], replicas=1),
             "prod"),
    Mutation("an older definition", "the_newest_version_takes_it",
             lambda o: _put(o.one("Cluster", "journal"), apiVersion="postgresql.cnpg.io/v1alpha1"),
             "ha"),
    Mutation("a label in the wrong place", "the_newest_version_takes_it",
             lambda o: _put(o.one("Cluster", "journal")["metadata"], label={"a": "b"}), "ha"),
    # names that lead nowhere
    Mutation("another namespace", "everything_is_in_the_namespace",
             lambda o: _put(o.one("Service", "broker")["metadata"], namespace="default")),
    Mutation("a Service of nobody", "services_select_pods",
             lambda o: _put(spec(o, "Service", "semel")["selector"], x="y")),
    Mutation("a port by a name that pods do not know", "ports_have_names_that_pods_know",
             lambda o: _put(spec(o, "Service", "semel")["ports"][0], targetPort="http")),
    Mutation("a monitor of a port that is not there", "ports_have_names_that_pods_know",
             lambda o: _put(spec(o, "ServiceMonitor", "semel")["endpoints"][0], port="x"), "prod"),
    Mutation("a monitor of nothing", "ports_have_names_that_pods_know",
             lambda o: _put(spec(o, "ServiceMonitor", "semel"), selector=_OTHER), "prod"),
    Mutation("an alert that nobody has tried", "alerts_are_those_that_are_tested",
             lambda o: _put(spec(o, "PrometheusRule", "semel")["groups"][0], rules=[]), "prod"),
    Mutation("a Service with one address for all", "instances_have_a_headless_service",
             lambda o: spec(o, "Service", "broker").pop("clusterIP")),
    Mutation("a headless Service of others", "instances_have_a_headless_service",
             lambda o: _put(spec(o, "Service", "broker"), selector=_OTHER["matchLabels"])),
    Mutation("a ConfigMap that is not there", "references_lead_to_something",
             lambda o: _put(container(o)["envFrom"][0]["configMapRef"], name="settings")),
    Mutation("a Secret that is not there", "references_lead_to_something",
             lambda o: _put(next(v for v in pod(o)["volumes"] if "secret" in v)["secret"],
                            secretName="other"), "prod"),
    Mutation("an account that is not there", "references_lead_to_something",
             lambda o: _put(pod(o), serviceAccountName="nobody")),
    Mutation("a variable that comes later", "variables_are_defined_before_they_are_used",
             lambda o: container(o)["env"].reverse()),
    Mutation("a broker more than load balancers", "every_instance_is_reached_from_outside",
             lambda o: _put(broker(o), replicas=4), "prod"),
    Mutation("any version of an image", "images_are_pinned",
             lambda o: _put(container(o), image="semel-broker:latest")),
    Mutation("pods that do not say what they are", "labels_name_the_program",
             lambda o: broker(o)["template"]["metadata"]["labels"].pop("app.kubernetes.io/name")),
    Mutation("checkpoints on no volume", "pipelines_find_what_they_name",
             lambda o: without(o, "PersistentVolumeClaim", "checkpoints"), "prod"),
    Mutation("a driver that is nobody", "pipelines_find_what_they_name",
             lambda o: without(o, "ServiceAccount", "spark-driver"), "prod"),
    Mutation("executors that are nobody", "pipelines_find_what_they_name",
             lambda o: without(o, "ServiceAccount", "spark-executor"), "prod"),
    # what the code knows
    Mutation("another program", "services_run_their_program",
             lambda o: _put(container(o), command=["python3", "-m", "semel_group"])),
    Mutation("a setting misspelt", "settings_are_known",
             lambda o: _put(config(o), SEMEL_LOG_FORMATS="json")),
    Mutation("another service's setting", "settings_are_known",
             lambda o: _put(config(o, "broker-settings"), SEMEL_GROUPS_MAX="5")),
    Mutation("a value that is refused", "settings_are_taken",
             lambda o: _put(config(o), SEMEL_LOG_FORMAT="xml")),
    Mutation("one number for all instances", "settings_are_taken",
             lambda o: container(o)["env"].__setitem__(
                 3, {"name": "SEMEL_INSTANCE_ID", "value": "0"})),
    Mutation("a listener that is not bound", "settings_are_taken",
             lambda o: _put(config(o), SEMEL_INTER_BROKER_LISTENER_NAME="inside")),
    Mutation("fewer coordinators than the layout", "there_are_as_many_as_the_layout_says",
             lambda o: _put(spec(o, "StatefulSet", "coordinator"), replicas=2)),
    Mutation("more group coordinators in the layout", "there_are_as_many_as_the_layout_says",
             lambda o: _put(config(o, "coordinator-settings"), SEMEL_GROUP_COORDINATORS="4")),
    Mutation("a database without a standby that confirms", "databases_keep_what_they_confirm",
             lambda o: _put(synchronous(o), number=0), "ha"),
    Mutation("a database that goes on alone", "databases_keep_what_they_confirm",
             lambda o: _put(synchronous(o), dataDurability="preferred"), "ha"),
    Mutation("a promotion of whoever is there", "databases_keep_what_they_confirm",
             lambda o: _put(synchronous(o), failoverQuorum=False), "ha"),
    Mutation("a database that one node stops", "databases_keep_what_they_confirm",
             lambda o: _put(spec(o, "Cluster", "journal"), instances=2), "ha"),
    Mutation("a database on one node", "databases_keep_what_they_confirm",
             lambda o: _put(spec(o, "Cluster", "journal")["affinity"],
                            podAntiAffinityType="preferred"), "ha"),
    Mutation("a primary that waits for services", "primaries_do_not_wait_for_those_who_stay",
             lambda o: spec(o, "Cluster", "journal").pop("smartShutdownTimeout"), "ha"),
    Mutation("five minutes on a node that is down", "nothing_waits_for_a_node_that_keeps_nothing",
             lambda o: pod(o)["tolerations"].pop(), "ha"),
    Mutation("a zone that is down and counts", "nothing_waits_for_a_node_that_keeps_nothing",
             lambda o: pod(o)["topologySpreadConstraints"][0].pop("nodeTaintsPolicy"), "ha"),
    Mutation("a volume beside a database", "journals_are_on_the_volume",
             lambda o: _put(broker(o), volumeClaimTemplates=[{}]), "ha"),
    Mutation("one journal in the database, others not", "journals_are_on_the_volume",
             lambda o: container(o)["env"].remove(variable(o, "SEMEL_JOURNAL_URL")), "ha"),
    Mutation("a certificate of nobody", "references_lead_to_something",
             lambda o: _put(volume(o, "postgres-ca")["secret"], secretName="other-ca"), "ha"),
    Mutation("a journal on no volume", "journals_are_on_the_volume",
             lambda o: _put(config(o), SEMEL_DATA_DIR="/tmp/journal")),
    Mutation("an address of another Service", "addresses_lead_to_their_instance",
             lambda o: _put(variable(o, "SEMEL_ADVERTISED_LISTENERS"),
                            value="internal://$(POD_NAME).brokers.semel.svc:9092")),
    Mutation("one address outside for all", "addresses_lead_to_their_instance",
             lambda o: _put(variable(o, "SEMEL_ADVERTISED_FRAME_LISTENERS"),
                            value=variable(o, "SEMEL_ADVERTISED_FRAME_LISTENERS")["value"].replace(
                                "1911$(SEMEL_INSTANCE_ID)", "19110"))),
    Mutation("frames anywhere", "addresses_lead_to_their_instance",
             lambda o: _put(variable(o, "SEMEL_ADVERTISED_FRAME_LISTENERS"), value="")),
    Mutation("a controller that is elsewhere", "the_controller_is_where_all_look_for_it",
             lambda o: _put(variable(o, "SEMEL_CONTROLLER"),
                            value="coordinator-1.coordinator:9092")),
    Mutation("a client that is told of nobody", "clients_are_told_of_services_that_are_there",
             lambda o: _put(spec(o, "Job", "topics")["template"]["spec"]["containers"][0]["env"][0],
                            value="semel:9999")),
    Mutation("an application that is told of nobody", "clients_are_told_of_services_that_are_there",
             lambda o: _put(application(o)["env"][-1], value="other:9092")),
    Mutation("an application that shows nothing", "clients_show_a_certificate_where_one_is_asked",
             lambda o: application(o).pop("volumeMounts"), "prod"),
    Mutation("a client that believes nobody", "clients_show_a_certificate_where_one_is_asked",
             lambda o: application(o)["env"].pop(0), "ha"),
    Mutation("a pipeline in plain text", "clients_show_a_certificate_where_one_is_asked",
             lambda o: pipeline(o)["arguments"].remove("--semel=security.protocol=SSL"), "prod"),
    Mutation("executors without a key", "clients_show_a_certificate_where_one_is_asked",
             lambda o: executor(o)["volumeMounts"].pop(), "ha"),
    Mutation("traces to nobody", "clients_are_told_of_services_that_are_there",
             lambda o: without(o, "Service", "jaeger")),
    Mutation("a console that other pods reach", "the_console_is_reached_by_a_port_forward_alone",
             lambda o: console(o)["command"].__setitem__(-1, "0.0.0.0:9080")),
    Mutation("a console at another port", "the_console_is_reached_by_a_port_forward_alone",
             lambda o: _put(console(o)["ports"][0], containerPort=9081), "prod"),
    Mutation("a probe of nothing", "the_console_is_reached_by_a_port_forward_alone",
             lambda o: console(o).pop("livenessProbe")),
    Mutation("a console for all", "the_console_is_reached_by_a_port_forward_alone",
             lambda o: spec(o, "NetworkPolicy", "console-admits-no-pod").update(ingress=[{}])),
    Mutation("a console that no service admits", "clients_bear_the_label",
             lambda o: spec(o, "Deployment", "console")["template"]["metadata"]["labels"].pop(
                 "semel-client")),
    Mutation("a port that is not declared", "ports_are_those_of_the_settings",
             lambda o: container(o)["ports"].pop()),
    Mutation("a listener at another port", "ports_are_those_of_the_settings",
             lambda o: _put(config(o), SEMEL_LISTENERS=config(o)["SEMEL_LISTENERS"].replace(
                 "9092", "9192"))),
    Mutation("frames at any free port", "ports_are_those_of_the_settings",
             lambda o: _put(config(o), SEMEL_FRAME_LISTENERS="")),
    Mutation("a port too many admitted", "policies_admit_exactly_the_ports_in_use",
             lambda o: spec(o, "NetworkPolicy", _SERVICES)["ingress"][0]["ports"].append(
                 {"protocol": "TCP", "port": 22})),
    Mutation("a port that is not admitted", "policies_admit_exactly_the_ports_in_use",
             lambda o: spec(o, "NetworkPolicy", _SERVICES)["ingress"][0]["ports"].pop()),
    Mutation("metrics for nobody", "policies_admit_exactly_the_ports_in_use",
             lambda o: without(o, "NetworkPolicy", "services-admit-monitoring"), "prod"),
    Mutation("services that reach nobody", "policies_admit_exactly_the_ports_in_use",
             lambda o: without(o, "NetworkPolicy", "all-reach-services")),
    Mutation("a probe for a service of another name", "probes_ask_for_what_the_service_says",
             lambda o: _put(container(o)["readinessProbe"]["grpc"], service="semel.broker.v2.B")),
    Mutation("a restart of who is only not ready", "probes_ask_for_what_the_service_says",
             lambda o: container(o)["livenessProbe"]["grpc"].pop("service")),
    Mutation("a probe at a port with TLS", "probes_ask_for_what_the_service_says",
             lambda o: _put(container(o)["startupProbe"]["grpc"], port=9092)),
    Mutation("a drain longer than the grace period", "ends_take_no_longer_than_they_may",
             lambda o: _put(config(o), SEMEL_SHUTDOWN_DRAIN_MS="20000")),
    Mutation("a log for people", "logs_are_for_programs",
             lambda o: config(o).pop("SEMEL_LOG_FORMAT")),
    Mutation("a certificate for others", "certificates_name_all_addresses",
             lambda o: _put(spec(o, "Certificate", "broker"), dnsNames=["broker"]), "prod"),
    Mutation("an open listener beside certificates", "nothing_is_open_where_there_are_certificates",
             lambda o: _put(config(o), SEMEL_INSECURE_LISTENERS="internal"), "prod"),
    Mutation("a key that is not mounted", "nothing_is_open_where_there_are_certificates",
             lambda o: _put(config(o), SEMEL_SSL_KEY_LOCATION="/tls.key"), "prod"),
    Mutation("a service that nobody knows", "services_know_one_another_by_their_certificates",
             lambda o: _put(spec(o, "Certificate", "broker"), uris=["spiffe://semel/other"]),
             "prod"),
    Mutation("a listener that is open without a word", "settings_are_taken",
             lambda o: config(o).pop("SEMEL_INSECURE_LISTENERS")),
    # what pods may do
    Mutation("a pod as root", "pods_are_restricted",
             lambda o: _put(pod(o)["securityContext"], runAsUser=0)),
    Mutation("no seccomp profile", "pods_are_restricted",
             lambda o: pod(o)["securityContext"].pop("seccompProfile")),
    Mutation("a root file system to write to", "pods_are_restricted",
             lambda o: _put(container(o)["securityContext"], readOnlyRootFilesystem=False)),
    Mutation("capabilities", "pods_are_restricted",
             lambda o: container(o)["securityContext"].pop("capabilities")),
    Mutation("more privileges", "pods_are_restricted",
             lambda o: container(o)["securityContext"].pop("allowPrivilegeEscalation")),
    Mutation("the node's network", "pods_are_restricted", lambda o: _put(pod(o), hostNetwork=True)),
    Mutation("a port of the node", "pods_are_restricted",
             lambda o: _put(container(o)["ports"][0], hostPort=9092)),
    Mutation("a folder of the node", "pods_are_restricted",
             lambda o: pod(o)["volumes"].append({"name": "x", "hostPath": {"path": "/"}})),
    Mutation("a secret that every user of the pod may read", "secrets_are_closed_to_others",
             lambda o: pod(o)["volumes"].append({"name": "x", "secret": {"secretName": "x"}})),
    Mutation("a namespace that takes anything", "the_namespace_takes_only_restricted_pods",
             lambda o: o.one("Namespace", "semel")["metadata"].update(labels={})),
    Mutation("a token", "nobody_has_a_token",
             lambda o: pod(o).pop("automountServiceAccountToken")),
    Mutation("a token of the account", "nobody_has_a_token",
             lambda o: o.one("ServiceAccount", "broker").pop("automountServiceAccountToken")),
    Mutation("executors with the driver's token, by their account", "nobody_has_a_token",
             lambda o: _put(executor(o), serviceAccount="spark-driver"), "prod"),
    Mutation("executors with the driver's token, for want of an account", "nobody_has_a_token",
             lambda o: executor(o).pop("serviceAccount"), "prod"),
    Mutation("somebody else's account", "each_service_is_somebody",
             lambda o: _put(pod(o), serviceAccountName="coordinator")),
    Mutation("no budget", "one_instance_may_leave_at_a_time",
             lambda o: without(o, "PodDisruptionBudget", "broker")),
    Mutation("a budget of two", "one_instance_may_leave_at_a_time",
             lambda o: _put(spec(o, "PodDisruptionBudget", "broker"), maxUnavailable=2)),
    Mutation("a budget for those that do not come up", "one_instance_may_leave_at_a_time",
             lambda o: spec(o, "PodDisruptionBudget", "broker").pop("unhealthyPodEvictionPolicy")),
    Mutation("a budget of nobody", "one_instance_may_leave_at_a_time",
             lambda o: _put(spec(o, "PodDisruptionBudget", "broker"), selector=_OTHER)),
    Mutation("all on one node", "instances_spread_over_nodes_and_zones",
             lambda o: pod(o).pop("topologySpreadConstraints")),
    Mutation("an open door", "nothing_is_reached_by_default",
             lambda o: without(o, "NetworkPolicy", "nothing-by-default")),
    Mutation("a client that is not admitted", "clients_bear_the_label",
             lambda o: spec(o, "Job", "topics")["template"]["metadata"]["labels"].pop(
                 "semel-client")),
]  # fmt: skip
