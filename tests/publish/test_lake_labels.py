"""What people say of a run, in the lake."""

from lake_runs import asked, counts, lake_of, run, tree

from ssdrig.runs import labels


def test_labels_come_with_the_run_and_may_change_later(tmp_path):
    """They are no part of what was measured: only the row of the run is written anew."""
    made = run(tmp_path, "20261120T101500Z-consistency-sata-tlc-0001")
    first = lake_of(tmp_path / "lake", made)
    (earlier,), of_kinds = asked(first, "SELECT * FROM run"), counts(first)
    assert earlier["title"] is None and earlier["tags"] == []
    before = tree(tmp_path / "lake")
    labels.change(made, title="Fan off, «Ω»", add=["review", "b2"])
    lake = lake_of(tmp_path / "lake", made)
    (row,) = asked(lake, "SELECT * FROM run WHERE list_contains(tags, 'review')")
    assert row["title"] == "Fan off, «Ω»" and row["tags"] == ["b2", "review"]
    assert {n for n in row if row[n] != earlier[n]} == {"title", "tags"}
    changed = {name for name, entry in tree(tmp_path / "lake").items() if before.get(name) != entry}
    assert len(changed) == 1 and "kind=run/" in changed.pop() and counts(lake) == of_kinds
    after = tree(tmp_path / "lake")
    assert lake_of(tmp_path / "lake", made) and tree(tmp_path / "lake") == after
