"""`semel transactions list` in parts, in both orders."""

from command_line import CommandLine


def test_a_list_of_transactional_ids_goes_on_behind_an_entry(
    semel: CommandLine, topic: str
) -> None:
    for number in range(3):
        semel("produce", topic, "--transactional-id", f"{topic}-{number}", stdin="1\n")
    pattern = f"{topic.replace('[', '.')}-."
    listing = ("transactions", "list", "--id-pattern", pattern, "--limit", "2")
    for order in ((), ("--oldest-first",)):
        first = semel(*listing, *order, "--format", "json")
        ids = [entry["transactional_id"] for entry in first.json]
        assert ids == [f"{topic}-0", f"{topic}-1"]
        position = first.json[-1]["position"]
        assert f"go on with --behind '{position}'" in first.err
        rest = semel(*listing, *order, "--behind", position, "--format", "json")
        assert [entry["transactional_id"] for entry in rest.json] == [f"{topic}-2"]
        assert "--behind" not in rest.err
    assert "behind is 'x'" in semel(*listing, "--behind", "x", status=1).err
