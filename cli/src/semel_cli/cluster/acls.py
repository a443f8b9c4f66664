"""`semel acls`: access rules."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli.shared.cluster_choice import BootstrapOption
from semel_cli.shared.command_errors import UsageError
from semel_cli.shared.command_session import with_client
from semel_cli.shared.options import not_empty
from semel_cli.shared.output import Format, FormatOption, Table, are, examples, note, show
from semel_console.insight.texts import counted

if TYPE_CHECKING:
    from aiosemel import AclBinding, AclBindingFilter, SemelClient


class Operation(StrEnum):
    """What a rule may name; the SDK's words."""

    ALL = "all"
    READ = "read"
    WRITE = "write"
    CREATE = "create"
    DELETE = "delete"
    ALTER = "alter"
    DESCRIBE = "describe"
    DESCRIBE_CONFIGS = "describe_configs"
    ALTER_CONFIGS = "alter_configs"
    IDEMPOTENT_WRITE = "idempotent_write"


app = typer.Typer(
    no_args_is_help=True,
    help="List and change access rules. They count where services authorize (authorizer=acls).",
    epilog=examples(
        "semel acls add --principal User:shop --operation write --topic orders --dry-run",
        "semel acls list --principal User:shop",
    ),
)

PrincipalOption = Annotated[
    str | None,
    typer.Option(
        "--principal",
        metavar="User:NAME",
        help="`User:*` is everybody.",
        callback=not_empty,
        show_default=False,
    ),
]
OperationsOption = Annotated[
    list[Operation] | None,
    typer.Option(
        "--operation",
        "-o",
        help="May be given several times.",
        show_default=False,
    ),
]
TopicOption = Annotated[
    str | None, typer.Option("--topic", metavar="NAME", callback=not_empty, show_default=False)
]
GroupOption = Annotated[
    str | None, typer.Option("--group", metavar="NAME", callback=not_empty, show_default=False)
]
TransactionalIdOption = Annotated[
    str | None,
    typer.Option("--transactional-id", metavar="NAME", callback=not_empty, show_default=False),
]
ClusterOption = Annotated[bool, typer.Option("--cluster", help="The cluster as a whole.")]
PrefixedOption = Annotated[
    bool, typer.Option("--prefixed", help="The name is the beginning of names.")
]
DenyOption = Annotated[
    bool, typer.Option("--deny", help="Deny it: this rule wins over all rules that allow it.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Check and show, change nothing.")]


@app.command(
    epilog=examples(
        "semel acls add --principal User:shop -o read -o write \\",
        "    --topic orders- --prefixed",
        "semel acls add --principal User:eve -o all --topic '*' --deny",
    )
)
def add(  # noqa: PLR0913, PLR0917 - each option is an argument
    principal: PrincipalOption = None,
    operation: OperationsOption = None,
    topic: TopicOption = None,
    group: GroupOption = None,
    transactional_id: TransactionalIdOption = None,
    cluster: ClusterOption = False,
    prefixed: PrefixedOption = False,
    deny: DenyOption = False,
    dry_run: DryRunOption = False,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Add rules: each operation on each resource. Existing rules stay as they are."""
    resources = _resources(topic, group, transactional_id, cluster)
    if principal is None or not operation or not resources:
        raise UsageError(
            "a rule has --principal User:NAME, --operation, and a resource: --topic, --group,"
            " --transactional-id or --cluster"
        )

    async def work(client: "SemelClient") -> "list[AclBinding]":
        from aiosemel import AclBinding, AclOperation, AclPermission, PatternType, ResourceType

        rules = [
            AclBinding(
                resource_type=ResourceType(kind),
                resource_name=name,
                pattern_type=PatternType.PREFIXED if prefixed else PatternType.LITERAL,
                principal=principal,
                operation=AclOperation(each),
                permission=AclPermission.DENY if deny else AclPermission.ALLOW,
            )
            for kind, name in resources
            for each in operation
        ]
        return await client.admin().access.create_acls(rules, validate_only=dry_run)

    created = with_client(bootstrap, work, changes=not dry_run)
    will = "would be" if dry_run else are(len(created))
    note(f"{counted(len(created), 'rule')} {will} added")
    _show(output_format, created, "They are there already.")


@app.command(name="list", epilog=examples("semel acls list --topic orders --match"))
def list_(  # noqa: PLR0913, PLR0917 - each option is an argument
    principal: PrincipalOption = None,
    operation: OperationsOption = None,
    topic: TopicOption = None,
    group: GroupOption = None,
    transactional_id: TransactionalIdOption = None,
    cluster: ClusterOption = False,
    match: Annotated[
        bool, typer.Option("--match", help="Every rule that counts for a resource of this name.")
    ] = False,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """List rules; without options, all."""

    async def work(client: "SemelClient") -> "list[AclBinding]":
        from aiosemel import PatternType

        resources = _resources(topic, group, transactional_id, cluster)
        pattern = PatternType.MATCH if match else None
        found: dict[AclBinding, None] = {}
        for wanted in _filters(principal, operation, resources, pattern):
            found |= dict.fromkeys(await client.admin().access.describe_acls(wanted))
        return list(found)

    _show(output_format, with_client(bootstrap, work), "There are no such rules.")


@app.command(
    epilog=examples(
        "semel acls remove --principal User:shop --dry-run",
        "semel acls remove --principal User:shop --topic orders",
    )
)
def remove(  # noqa: PLR0913, PLR0917 - each option is an argument
    principal: PrincipalOption = None,
    operation: OperationsOption = None,
    topic: TopicOption = None,
    group: GroupOption = None,
    transactional_id: TransactionalIdOption = None,
    cluster: ClusterOption = False,
    prefixed: PrefixedOption = False,
    dry_run: DryRunOption = False,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Remove every rule that fits all options; without --prefixed, only rules of whole names."""
    resources = _resources(topic, group, transactional_id, cluster)
    if principal is None and not resources:
        raise UsageError(
            "which rules? Give --principal, --topic, --group, --transactional-id or --cluster"
        )

    async def work(client: "SemelClient") -> "list[AclBinding]":
        from aiosemel import PatternType

        pattern = PatternType.PREFIXED if prefixed else PatternType.LITERAL
        wanted = _filters(principal, operation, resources, pattern if resources else None)
        return await client.admin().access.delete_acls(wanted, validate_only=dry_run)

    removed = with_client(bootstrap, work, changes=not dry_run)
    will = "would be" if dry_run else are(len(removed))
    note(f"{counted(len(removed), 'rule')} {will} removed")
    _show(output_format, removed, "There are no such rules.")


def _resources(
    topic: str | None, group: str | None, transactional_id: str | None, cluster: bool
) -> list[tuple[str, str]]:
    """Return the resources that are named, each with its type."""
    named = (
        ("topic", topic),
        ("group", group),
        ("transactional_id", transactional_id),
        ("cluster", "cluster" if cluster else None),
    )
    return [(kind, name) for kind, name in named if name is not None]


def _filters(
    principal: str | None,
    operations: list[Operation] | None,
    resources: list[tuple[str, str]],
    pattern: str | None,
) -> "list[AclBindingFilter]":
    from aiosemel import AclBindingFilter, AclOperation, PatternType, ResourceType

    any_operation: list[Operation | None] = [None]
    return [
        AclBindingFilter(
            resource_type=ResourceType(kind) if kind else None,
            resource_name=name or None,
            pattern_type=PatternType(pattern) if pattern else None,
            principal=principal,
            operation=AclOperation(operation) if operation else None,
        )
        for kind, name in resources or [("", "")]
        for operation in operations or any_operation
    ]


def _show(output_format: Format, rules: "list[AclBinding]", empty: str) -> None:
    found = [
        {
            "principal": rule.principal,
            "permission": rule.permission.value,
            "operation": rule.operation.value,
            "resource_type": rule.resource_type.value,
            "resource_name": rule.resource_name,
            "pattern_type": rule.pattern_type.value,
        }
        for rule in rules
    ]
    show(
        output_format,
        found,
        Table(
            headings=("Principal", "Permission", "Operation", "Resource", "Name", "Pattern"),
            rows=[tuple(rule.values()) for rule in found],
            empty=empty,
        ),
    )
