"""Access rules, quotas, and the answer to "may this user do that?". No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass

from aiosemel import AclBinding, AclOperation, AclPermission, ClientQuota, ResourceType
from semel_console.insight.command_lines import command_line
from semel_console.insight.may import Question, Verdict, may
from semel_console.views.blocks import (
    Block,
    Field,
    Form,
    Grid,
    Missing,
    Notice,
    Page,
    Row,
    Section,
    Tone,
    badge,
    cell,
)
from semel_console.views.paging import LIST_BYTES_MAX, fitting, note_of_cut

RULES_MAX = 200
QUOTAS_MAX = 200
_BYTES_MAX = LIST_BYTES_MAX // 2
"""Of each of the two lists."""
OPERATIONS = tuple(each.value for each in AclOperation if each is not AclOperation.CLUSTER_ACTION)
ANY_OPERATION = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRights:
    """The choices in the address: a principal, and a question about its rights."""

    principal: str
    operation: str
    topic: str
    group: str
    transactional_id: str

    @property
    def questions(self) -> Sequence[Question]:
        """One for each resource that is named, if principal and operation are."""
        if not (self.principal and self.operation):
            return ()
        named = (
            (ResourceType.TOPIC, self.topic),
            (ResourceType.GROUP, self.group),
            (ResourceType.TRANSACTIONAL_ID, self.transactional_id),
        )
        return tuple(
            Question(
                principal=self.principal,
                operation=AclOperation(self.operation),
                resource_type=kind,
                resource_name=name,
            )
            for kind, name in named
            if name
        )


def rules_page(
    rules: Sequence[AclBinding] | Missing,
    quotas: Sequence[ClientQuota] | Missing,
    asked: AskedRights,
) -> Page:
    """Return the rules and the quotas, of one principal or of all, and the answers."""
    principal = asked.principal
    words = ["--principal", principal] if principal else []
    shown: Sequence[AclBinding] | Missing = rules
    if not isinstance(rules, Missing) and principal:
        shown = [each for each in rules if each.principal in {principal, "User:*"}]
    command = command_line("acls", "list", *words)
    rule_lines, quota_lines = _rules(shown), _quotas(quotas)
    return Page(
        title="Rules and quotas",
        command=command,
        form=_form(asked),
        notices=() if isinstance(rules, Missing) else _answers(asked.questions, rules),
        sections=(
            Section(
                title="Access rules",
                note=note_of_cut(rule_lines, shown, command),
                blocks=(rule_lines,),
            ),
            Section(
                title="Quotas",
                note=note_of_cut(quota_lines, quotas, command_line("quotas", "list")),
                blocks=(quota_lines,),
            ),
        ),
    )


def _form(asked: AskedRights) -> Form:
    choices = ((ANY_OPERATION, "any"), *((each, each) for each in OPERATIONS))
    return Form(
        action="/rules",
        button="May it?",
        fields=(
            Field(name="principal", label="Principal, such as User:app", value=asked.principal),
            Field(name="operation", label="Operation", value=asked.operation, choices=choices),
            Field(name="topic", label="On topic", value=asked.topic),
            Field(name="group", label="On group", value=asked.group),
            Field(
                name="transactional_id", label="On transactional id", value=asked.transactional_id
            ),
        ),
    )


def _answers(questions: Sequence[Question], rules: Sequence[AclBinding]) -> Sequence[Notice]:
    return [_answer(question, may(question, rules)) for question in questions]


def _answer(question: Question, verdict: Verdict) -> Notice:
    kind = question.resource_type.value.replace("_", " ")
    what = f"{question.operation.value} {kind} {question.resource_name}"
    if verdict.rule is not None:
        says = f"by the rule “{rule_text(verdict.rule)}”"
        if verdict.allowed:
            return Notice(text=f"Yes: {question.principal} may {what}, {says}.", tone=Tone.GOOD)
        return Notice(text=f"No: {question.principal} may not {what}, {says}.", tone=Tone.BAD)
    if verdict.has_rules:
        why = "no rule allows it, and there are rules about this resource"
    else:
        why = (
            "there is no rule about this resource; the setting"
            " SEMEL_ALLOW_EVERYONE_IF_NO_ACL_FOUND decides"
        )
    return Notice(
        text=f"No: {question.principal} may not {what}, unless it is a super user: {why}.",
        tone=Tone.BAD,
    )


def rule_text(rule: AclBinding) -> str:
    """Return a rule as one phrase."""
    kind = rule.resource_type.value.replace("_", " ")
    pattern = f"{kind} {rule.resource_name}"
    if rule.pattern_type.value == "prefixed":
        pattern = f"every {kind} that begins with {rule.resource_name}"
    return f"{rule.permission.value} {rule.principal} {rule.operation.value} {pattern}"


def _rules(rules: Sequence[AclBinding] | Missing) -> Block:
    if isinstance(rules, Missing):
        return rules
    rows = [
        Row(
            cells=(
                cell(each.principal),
                badge(
                    each.permission.value,
                    Tone.BAD if each.permission is AclPermission.DENY else Tone.GOOD,
                ),
                cell(each.operation.value),
                cell(each.resource_type.value),
                cell(each.resource_name),
                cell(each.pattern_type.value),
            )
        )
        for each in rules[:RULES_MAX]
    ]
    return Grid(
        headings=("Principal", "Permission", "Operation", "Resource", "Name", "Pattern"),
        rows=fitting(rows, RULES_MAX, bytes_max=_BYTES_MAX),
        empty="There is no rule.",
    )


def _quotas(quotas: Sequence[ClientQuota] | Missing) -> Block:
    if isinstance(quotas, Missing):
        return quotas
    rows = [
        Row(
            cells=(
                cell(each.user or "all users without limits of their own"),
                cell(", ".join(f"{name}: {value:,.0f}" for name, value in each.limits.items())),
            )
        )
        for each in quotas[:QUOTAS_MAX]
    ]
    return Grid(
        headings=("User", "Limits, of each instance"),
        rows=fitting(rows, QUOTAS_MAX, bytes_max=_BYTES_MAX),
        empty="There is no quota.",
    )
