"""`ssdrig library`: a review goes to another house and is on the page of its reviews."""

import hashlib
import json
import os
import shutil
import zlib

import pytest
from synthetic_reviews import SIX, review

from ssdrig import cli
from ssdrig.base.errors import JournalError, UsageError
from ssdrig.plan import grammar
from ssdrig.reading import library_file
from ssdrig.report import economy, library, review_page

TWO = {"consistency": {}, "consistency op25": {"range": "raw 75 %"}}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("ours")


@pytest.fixture(scope="module")
def own(runs):
    return review(runs, SIX[0], TWO)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    return review(tmp_path_factory.mktemp("theirs"), SIX[2], TWO)


@pytest.fixture(scope="module")
def exported(theirs, tmp_path_factory):
    out = tmp_path_factory.mktemp("files") / "charlie.ssdlib"
    assert cli.main(["library", "export", str(theirs), "-o", str(out)]) == 0
    return out


def test_a_drive_is_some_hundred_kB(exported):
    shared = library_file.read(exported)
    assert len(shared.tables) == 2 and exported.stat().st_size < 300_000
    assert shared.price == "129 USD" and shared.rated_bytes == 600 * (64 << 20)


def test_what_is_imported_is_on_the_page_and_marked(runs, own, exported, capsys):
    alone = review_page.render(own)
    assert "SIMULATED reference" in alone and "Charlie" not in alone
    assert cli.main(["library", "import", str(exported), "--runs", str(runs), "--json"]) == 0
    imported = json.loads(capsys.readouterr().out)
    assert imported["models"] == ["SIMULATED drive Charlie 2TB"] and imported["runs"] == 2
    html = review_page.render(own)
    assert "SIMULATED reference" not in html
    listed = html.split('id="library-h"')[1].split("</section>")[0]
    assert "Charlie 2TB, default OP" in listed and "Charlie 2TB, 25 % OP" in listed and library.IMPORTED in listed
    article = html.split("<article")[1].split("</article>")[0]
    plots = [part for part in article.split("<figure")[1:] if "<svg" in part]
    assert len(plots) >= 6 and all("Charlie 2TB, default OP" in plot for plot in plots)
    assert cli.main(["library", "list", "--runs", str(runs)]) == 0
    reference, charlie = capsys.readouterr().out.splitlines()
    assert "SIMULATED reference" in reference and "129 USD" in charlie
    assert cli.main(["library", "import", str(exported), "--runs", str(runs)]) == 0
    assert len(list((runs / "library").iterdir())) == 1, "the same file again is the same"


def test_it_can_be_named(own, exported):
    html = review_page.render(own, [exported])
    assert "Charlie 2TB, default OP" in html


@pytest.mark.parametrize("price", ["1e9999 USD", "-1 USD", "much", "\x1b[2J"])
def test_a_price_that_no_page_can_show_is_refused_and_nothing_is_kept(exported, tmp_path, price):
    magic = len(library_file.MAGIC) + 32
    line, _, rest = zlib.decompress(exported.read_bytes()[magic:]).partition(b"\n")
    body = zlib.compress(json.dumps(json.loads(line) | {"price": price}).encode() + b"\n" + rest)
    odd = tmp_path / "odd.ssdlib"
    odd.write_bytes(library_file.MAGIC + hashlib.sha256(body).digest() + body)
    assert cli.main(["library", "import", str(exported), str(odd), "--runs", str(tmp_path)]) == JournalError.exit_code
    assert not (tmp_path / "library").exists()


def test_a_file_that_is_none_is_refused_and_nothing_is_kept(exported, tmp_path):
    wrong = tmp_path / "wrong.ssdlib"
    wrong.write_bytes(exported.read_bytes()[:-1])
    assert cli.main(["library", "import", str(exported), str(wrong), "--runs", str(tmp_path)]) == JournalError.exit_code
    assert not (tmp_path / "library").exists()


def test_a_file_of_a_stranger_in_the_folder_is_left_out_with_a_note(tmp_path):
    own = review(tmp_path, SIX[0], {"consistency": {}})
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "bad.ssdlib").write_bytes(b"x")
    assert "bad.ssdlib is left out of the library" in review_page.render(own)


def test_one_drive_a_file(own, theirs, tmp_path):
    words = ["library", "export", str(own), str(theirs), "-o", str(tmp_path / "a.ssdlib")]
    assert cli.main(words) == UsageError.exit_code
    assert cli.main(["library", "export", str(own), "-o", str(tmp_path / "a.html")]) == UsageError.exit_code
    assert cli.main(["library", "export", str(own), "--price", "cheap"]) == UsageError.exit_code


def test_the_reference_drives_are_simulated_by_their_names():
    shared = library_file.read(library.REFERENCE)
    models = {one.data.header["drive"]["model"] for one in shared.tables}
    assert len(models) >= 4 and all(model.startswith("SIMULATED reference") for model in models)
    assert all(one.data.header["simulated"] for one in shared.tables)
    assert library.REFERENCE.stat().st_size < 1_000_000


def test_the_reference_drives_have_the_plans_that_a_review_runs():
    """With the plans' present text: a run of another version is in no plot."""
    shared = library_file.read(library.REFERENCE)
    plans = {(one.plan.name, one.plan.variant) for one in shared.tables}
    assert plans == {("consistency", "quick"), ("consistency", None), ("qd-sweep", None), ("bs-sweep", None)}
    assert all(one.plan.text == grammar.find(one.plan.name)[0] for one in shared.tables)
    assert all(verdict.verdict["passed"] for one in shared.tables for verdict in one.verdicts)


@pytest.mark.parametrize("variant", ["quick", None])
def test_a_member_has_the_run_that_can_be_ranked_with_the_reviewed_one(variant):
    shared = library_file.read(library.REFERENCE)
    of_plan = [one for one in shared.tables if one.plan.name == "consistency"]
    reviewed = next(one for one in of_plan if one.plan.variant == variant)
    own, others = library.Facts("own"), library.Facts("others")
    members = library.members([(own, reviewed), *((others, one) for one in of_plan)], own)
    assert len(members) == 9 and [member.own for member in members] == [True] + [False] * 8
    assert {member.tables["consistency"].plan.variant for member in members} == {variant}


def test_a_run_is_compared_with_one_of_a_file(own, theirs, exported, capsys):
    run = next(path for path in own.iterdir() if path.name.startswith("consistency-a"))
    assert cli.main(["compare", str(run), str(exported), "--figure", "iops_mean", "--json"]) == 0
    of_file = json.loads(capsys.readouterr().out)
    other = next(path for path in theirs.iterdir() if path.name.startswith("consistency-c"))
    assert cli.main(["compare", str(run), str(other), "--figure", "iops_mean", "--json"]) == 0
    of_run = json.loads(capsys.readouterr().out)
    assert (
        of_file["difference"] == pytest.approx(of_run["difference"], rel=1e-4)
        and of_file["verdict"] == of_run["verdict"]
    )
    assert cli.main(["compare", str(exported), str(exported)]) == UsageError.exit_code


def test_a_drive_is_not_compared_with_itself(own, exported, tmp_path):
    mine = tmp_path / "mine.ssdlib"
    assert cli.main(["library", "export", str(own), "-o", str(mine)]) == 0
    copy = tmp_path / "copy.ssdlib"
    assert cli.main(["library", "export", str(own), "-o", str(copy), "--price", "5 USD"]) == 0
    html = review_page.render(own, [exported, mine, copy])
    listed = html.split('id="library-h"')[1].split("</section>")[0]
    assert listed.count("<tr data-run") == 4 and "mine.ssdlib: " in listed and "copy.ssdlib: " in listed


def test_a_damaged_file_hides_no_other(exported, tmp_path, capsys):
    assert cli.main(["library", "import", str(exported), "--runs", str(tmp_path)]) == 0
    (tmp_path / "library" / "a.ssdlib").write_bytes(b"x")
    (tmp_path / "library" / "z.ssdlib").symlink_to("/dev/zero")
    capsys.readouterr()
    assert cli.main(["library", "list", "--runs", str(tmp_path)]) == JournalError.exit_code
    listed = capsys.readouterr()
    assert len(listed.out.splitlines()) == 2 and "a.ssdlib" in listed.err and "z.ssdlib" in listed.err


def test_a_library_folder_that_is_none_is_an_error(exported, tmp_path):
    (tmp_path / "library").write_text("notes of mine")
    assert cli.main(["library", "import", str(exported), "--runs", str(tmp_path)]) == JournalError.exit_code
    assert (tmp_path / "library").read_text() == "notes of mine"


def test_an_export_replaces_one_of_these_runs_alone(theirs, exported, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["library", "export", str(theirs)]
    assert cli.main(words) == 0 and cli.main(words) == 0
    (path,) = tmp_path.glob("*.ssdlib")
    plain = zlib.decompress(path.read_bytes()[len(library_file.MAGIC) + 32 :])
    body = zlib.compress(plain.replace(b'"run":"', b'"run":"of-a-twin-'))
    twin = library_file.MAGIC + hashlib.sha256(body).digest() + body
    path.write_bytes(twin)
    assert cli.main(words) == UsageError.exit_code and path.read_bytes() == twin
    path.write_text("something else")
    assert cli.main(words) == UsageError.exit_code and path.read_text() == "something else"


def test_what_was_checked_is_what_is_stored(exported, tmp_path, monkeypatch):
    path = tmp_path / "a.ssdlib"
    path.write_bytes(exported.read_bytes())
    drawable = review_page.check_drawable

    def exchanged(*words):
        drawable(*words)
        path.write_bytes(b"another")

    monkeypatch.setattr(review_page, "check_drawable", exchanged)
    assert cli.main(["library", "import", str(path), "--runs", str(tmp_path)]) == 0
    (stored,) = (tmp_path / "library").iterdir()
    assert stored.read_bytes() == exported.read_bytes()


def test_a_review_takes_a_library_file_to_compare_with(exported, tmp_path):
    words = ["review", "--virtual", "sata-tlc", "--dry-run", "--runs", str(tmp_path)]
    assert cli.main([*words, "--against", str(exported)]) == 0
    (tmp_path / "bad.ssdlib").write_bytes(b"x")
    assert cli.main([*words, "--against", str(tmp_path / "bad.ssdlib")]) == JournalError.exit_code


def test_page_has_the_latest_files_and_counts_the_others(own, exported, tmp_path, monkeypatch):
    monkeypatch.setattr(library, "MOST_FILES", 2)
    monkeypatch.setattr(library, "MOST_RUNS", 1)
    house = tmp_path / "house"
    folder = shutil.copytree(own, house / own.name)
    review(house, SIX[1], TWO)
    (house / "library").mkdir()
    for n in range(4):
        os.utime(shutil.copy(exported, house / "library" / f"{n}.ssdlib"), (n + 1, n + 1))
    tables, notes = library.read(folder, None)
    assert {facts.where for facts, _ in tables} >= {"2.ssdlib"} and len(tables) == 3
    assert [note.split(" ")[0] for note in notes if "latest" in note or "imported last" in note] == ["1", "2"]


def test_reason_stands_in_place_of_a_card_that_no_drive_has_a_value_for(own):
    """Quick plans are SCALED: nothing is set against the price. The latencies have no histogram."""
    (own / "review.toml").write_text('[price]\n"SIMULATED drive Alpha 1TB" = "79 USD"\n')
    html = review_page.render(own)
    prices = html.split('id="price-h"')[1].split("</section>")[0]
    assert 'class="card"' not in prices and economy.SCALED in prices
    consistency = html.split('id="consistency-h"')[1] if 'id="consistency-h"' in html else html
    assert "No value: Random writes on a full drive, at the end: P99 latency" in consistency
