"""How a drive is proven: twins, disks that moved, swapped names or took a stranger's place, on the /sys of a machine as
files."""

import contextlib
import dataclasses

import pytest
from disktree import identify_page
from drives import a_drive
from guarding import SERIAL, against, make_ext4, tree  # noqa: F401  fixture

from ssdrig.base.errors import ExchangedDrive, UnsafeTarget, UsageError
from ssdrig.drive import guard, identity, inventory
from ssdrig.drive.door import path_of
from ssdrig.drive.identity import Identity, compare, placeholder
from ssdrig.drive.inventory import all_drives, find
from ssdrig.publish.influx.line_protocol import drive_tag

MIB = 1 << 20
SIZE = {"size_bytes": 64 * MIB}


def by_name(tree, name):
    return next(d for d in all_drives(tree.root) if d.name == name)


# --- comparisons


@pytest.mark.parametrize(
    "fact, value",
    [
        ("serial", "0002"),
        ("model", "OTHER"),
        ("wwn", "naa.2"),
        ("nsid", 2),
        ("lun", 1),
        ("capacity_bytes", 1),
        ("serial_source", "enclosure"),
        ("enclosure_serial", "DOCK2"),
    ],
)
def test_stranger_differs_in_one_fact(fact, value):
    known = a_drive(wwn="naa.1", lun=0, enclosure_serial="DOCK1")
    assert compare(known, a_drive(**vars(known) | {fact: value})) == ("different", (fact,))


@pytest.mark.parametrize("fact, value", [("wwn", ""), ("nsid", None), ("lun", None), ("model", ""), ("serial", "")])
def test_fact_that_is_missing_now_is_ambiguous(fact, value):
    known = a_drive(wwn="naa.1", lun=0)
    assert compare(known, a_drive(**vars(known) | {fact: value})) == ("ambiguous", (fact,))


def test_moved_drive_is_the_same_at_another_port_with_another_sequence():
    known = a_drive(port="a", diskseq=1, name="sda", node="/dev/sda", major=8)
    now = a_drive(port="b", diskseq=9, name="sdq", node="/dev/sdq", major=65)
    assert compare(known, now) == ("same", ())


def test_serial_is_compared_without_case_and_blanks():
    assert compare(a_drive(serial=" ab  1"), a_drive(serial="AB 1")).kind == "same"


def test_bridge_that_does_not_pass_identify_on_now_is_ambiguous():
    known = a_drive(serial="OWN1", serial_source="identify", enclosure_serial="DOCK")
    now = a_drive(serial="DOCK", serial_source="enclosure", enclosure_serial="DOCK")
    assert compare(known, now) == ("ambiguous", ("serial", "serial_source"))


def test_identity_of_a_record_ignores_what_is_of_another_type():
    odd = {"serial": 5, "model": ["x"], "nsid": "1", "lun": True, "capacity_bytes": 7, "wwn": "naa.1", "else": {}}
    facts = Identity.of(odd)
    assert (facts.serial, facts.model, facts.nsid, facts.lun, facts.capacity_bytes) == ("", "", None, None, 7)
    assert identity.conflict({}, odd) == ()


def test_a_record_of_a_drive_gives_its_identity_back(tree):
    drive = find(SERIAL, tree.root)
    assert compare(drive, Identity.of(dataclasses.asdict(drive))).kind == "same"


@pytest.mark.parametrize(
    "serial",
    "0123456789AB|000000000000|XXXXXXXX|REDACTED|NONE|none|To be filled by O.E.M.|To be filled|123456789012|0123456789"
    "|0123456789ABCDEF|1234567890|9876543210|1122334455|12121212|S4EVXXXXXXXX|********|-|Default string|N/A|0|AAAA"
    "|00-00-00-00|Serial Number|[REDACTED]|null|1111-2222-3333-4444|S2RBNX0H1XXXXXX|S4EV*****1234|sanitized|TBD".split(
        "|"
    ),
)
def test_placeholder_serial_is_known(serial):
    assert placeholder(serial)


@pytest.mark.parametrize(
    "serial",
    "|0001|S1|TEST|S3Z9NB0K100001|S6Z1NX0W100001|MSFT30012345678|vol-0abc|NVMEGUEST0001|00000001|WD-WX12A34B5678"
    "|1234567A|DD56419883891|XXL4711|20012345678".split("|"),
)
def test_serial_of_one_drive_is_no_placeholder(serial):
    assert not placeholder(serial)


def test_placeholder_serial_is_refused_without_override(tree):
    tree.sata("sdb", serial="000000000000", port=2, **SIZE)
    assert set(against(tree, "sdb", "000000000000")) == {"serial"}


# --- twins


def docked(tree, name, lun, serial="", **more):
    return tree.usb(name, serial=serial, lun=lun, **SIZE | more)


def test_twins_in_a_dock_are_refused_whatever_is_consented(tree):
    docked(tree, "sdd", 0)
    docked(tree, "sde", 1)
    for name in ("sdd", "sde"):
        for consent in (None, "MSFT30012345678", by_name(tree, name).consent):
            assert "twin" in against(tree, name, consent)
        with pytest.raises(UnsafeTarget, match="twin"), guard.hold(by_name(tree, name), None, tree.root):
            pass
    assert against(tree, "sda") == {}


@pytest.mark.parametrize(
    "other",
    [
        {"model": "Another model"},
        {"wwn": "naa.5000000000000009"},
        {"size_bytes": 128 * MIB},
        {"serial": SERIAL.lower()},
        {"serial": f" {SERIAL} "},
    ],
    ids=str,
)
def test_twin_with_other_facts_is_refused_too(tree, other):
    tree.sata("sdb", port=2, **SIZE | other)
    assert "twin" in against(tree, "sda") and "twin" in against(tree, "sdb")


def test_twin_with_the_same_wwn_at_another_sata_port_is_a_clone(tree):
    tree.sata("sdb", port=2, wwn="naa.5002538e00000001", **SIZE)
    assert "twin" in against(tree)


@pytest.mark.parametrize("subsystem", ["nqn.2014.08.org.nvmexpress:other", None])
def test_twin_nvme_drives_with_a_constant_serial_are_refused(tree, subsystem):
    tree.nvme(1, eui="0025385b99999901", subsystem=subsystem, **SIZE)
    assert set(against(tree, "nvme0n1")) == {"twin"} and set(against(tree, "nvme1n1")) == {"twin"}


def test_twin_luns_of_one_sas_target_are_refused(tree):
    tree.sas("sdb", **SIZE)
    tree.sas("sdc", lun=1, wwn="naa.5000c500a0b1c2d7", **SIZE)
    assert "twin" in against(tree, "sdb") and "twin" in against(tree, "sdc")


def test_twin_virtio_disks_are_refused(tree):
    tree.virtio("vda", **SIZE)
    tree.virtio("vdb", slot=3, **SIZE)
    assert "twin" in against(tree, "vda") and "twin" in against(tree, "vdb")


def test_empty_slot_of_a_card_reader_is_no_twin(tree):
    docked(tree, "sdd", 0)
    docked(tree, "sde", 1, size_bytes=0)
    assert against(tree, "sdd") == {}


def test_namespaces_of_one_drive_are_no_twins(tree):
    tree.nvme(0, nsid=2, **SIZE)
    assert against(tree, "nvme0n1") == against(tree, "nvme0n2") == {}


def test_native_multipath_is_no_twin(tree):
    tree.nvme_multipath(4, states=("live", "live"), size_bytes=64 * MIB)
    assert against(tree, "nvme4n1") == {}


def test_two_paths_of_a_sas_drive_are_no_twins_and_what_uses_one_counts_for_both(tree):
    tree.sas("sdb", **SIZE)
    tree.sas("sdc", port=1, **SIZE)
    assert against(tree, "sdb") == against(tree, "sdc") == {}
    tree.volume("dm-0", "sdb", "sdc", label="mpatha")
    assert list(against(tree, "sdb")) == list(against(tree, "sdc")) == ["holder"]


def test_two_paths_that_multipathd_has_joined_are_no_twins(tree):
    one, other = (a_drive(name=n, interface="SATA", nsid=None, wwn="naa.5001", multipath="mpath-1") for n in "ab")
    assert identity.twins(one, [one, other]) == []
    assert identity.twins(one, [one, dataclasses.replace(other, multipath="")]) != []


def test_eight_disks_with_serials_of_their_own_are_all_free(tree):
    for n in range(2, 9):
        tree.sata(f"sd{chr(ord('a') + n)}", serial=f"S3Z9NB0K10000{n}", port=n, **SIZE)
    assert all(against(tree, d.name) == {} for d in all_drives(tree.root))


def test_twin_is_not_named_by_its_serial(tree):
    tree.sata("sdb", port=2, wwn="naa.9", **SIZE)
    with pytest.raises(UsageError) as caught:
        find(SERIAL, tree.root)
    assert "unplug" in caught.value.do


# --- after an absence


def held_at(tree, name="sda"):
    return guard.hold(by_name(tree, name), None, tree.root)


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize("back", ["sda", "sdb"])
def test_moved_drive_is_followed_only_when_asked(tree, follow, back):
    with held_at(tree) as held:
        tree.remove("sda")
        tree.sata(back, port=2, **SIZE)
        if follow or back == "sda":
            assert held.recheck(follow).name == back
        else:
            with pytest.raises(UnsafeTarget, match="this drive is at /dev/sdb now"):
                held.recheck()


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize(
    "other",
    [{"wwn": "naa.5002538e00000099"}, {"wwn": " "}, {"model": "Another model"}, {"serial": "STRANGER"}],
    ids=str,
)
def test_stranger_in_the_place_of_the_drive_is_refused(tree, follow, other):
    with held_at(tree) as held:
        tree.remove("sda")
        tree.sata(**SIZE | other)
        with pytest.raises(ExchangedDrive):
            held.recheck(follow)
        assert held.drive.name == "sda"


@pytest.mark.parametrize("follow", [False, True])
def test_drive_that_came_back_with_another_capacity_is_refused(tree, follow):
    with held_at(tree) as held:
        tree.remove("sda")
        tree.sata(size_bytes=32 * MIB)
        with pytest.raises(UnsafeTarget, match="33554432 bytes"):
            held.recheck(follow)


@pytest.mark.parametrize("follow", [False, True])
def test_drive_that_came_back_as_another_lun_is_refused(tree, follow):
    docked(tree, "sdd", 0)
    with held_at(tree, "sdd") as held:
        tree.remove("sdd")
        docked(tree, "sdd", 1)
        with pytest.raises(ExchangedDrive, match="lun 1, not 0"):
            held.recheck(follow)


@pytest.mark.parametrize("follow", [False, True])
def test_twin_that_appears_beside_a_held_drive_stops_it(tree, follow):
    with held_at(tree) as held:
        tree.sata("sdb", port=2, **SIZE)
        with pytest.raises(ExchangedDrive, match="/dev/sda .*/dev/sdb"):
            held.recheck(follow)


@pytest.mark.parametrize("follow", [False, True])
def test_twins_that_swapped_their_names_are_refused(tree, follow):
    """The dock is plugged in again: the bays have each other's names."""
    docked(tree, "sdd", 0, wwn="naa.1")
    with held_at(tree, "sdd") as held:
        tree.remove("sdd")
        docked(tree, "sdd", 1, wwn="naa.2")
        docked(tree, "sde", 0, wwn="naa.1", host=7)
        with pytest.raises(ExchangedDrive):
            held.recheck(follow)
        assert held.fd >= 0 or held.drive.name == "sdd"


def test_drives_that_swapped_their_names_are_told_apart(tree):
    with held_at(tree) as held:
        tree.remove("sda")
        tree.sata("sda", serial="STRANGER1", **SIZE)
        tree.sata("sdb", port=2, **SIZE)
        with pytest.raises(UnsafeTarget, match="this drive is at /dev/sdb now"):
            held.recheck()
        assert held.recheck(follow=True).name == "sdb"


def test_swapped_nvme_drives_with_a_constant_serial_are_told_by_their_eui(tree):
    with held_at(tree, "nvme0n1") as held:
        tree.remove("nvme0n1")
        tree.nvme(0, eui="0025385b99999901", **SIZE)
        for follow in (False, True):
            with pytest.raises(ExchangedDrive, match="wwn eui.0025385b99999901"):
                held.recheck(follow)


def test_moved_namespace_is_not_taken_for_another(tree):
    with held_at(tree, "nvme0n1") as held:
        tree.nvme(0, nsid=2, **SIZE)
        tree.remove("nvme0n1")
        with pytest.raises(UnsafeTarget):
            held.recheck(follow=True)


# --- marks


def marked(held, tree, name="sda"):
    content = {at: bytes([at // MIB + 1, 7]) * 2048 for at in (0, 8 * MIB, 40 * MIB)}
    with open(tree.root / "dev" / name, "r+b") as node:
        for at, block in content.items():
            node.seek(at)
            node.write(block)
    held.mark(content)


def come_back(tree, keep: bool):
    """A disk with the same facts appears; with the content of the one before, or blank."""
    old = (tree.root / "dev/sda").read_bytes()
    tree.remove("sda")
    tree.sata(**SIZE)
    if keep:
        (tree.root / "dev/sda").write_bytes(old)


def test_moved_drive_with_our_mark_may_be_written(tree):
    with held_at(tree) as held:
        marked(held, tree)
        come_back(tree, keep=True)
        moved = held.recheck()
        held.prove()
        assert held.drive is moved and held.path == path_of(held.opened.fd)


def test_stranger_without_our_mark_is_refused_before_the_first_write(tree):
    with held_at(tree) as held:
        marked(held, tree)
        come_back(tree, keep=False)
        held.recheck()
        for _ in range(2):
            with pytest.raises(ExchangedDrive, match="3 places"):
                held.prove()


def test_one_mark_of_several_is_enough(tree):
    with held_at(tree) as held:
        marked(held, tree)
        come_back(tree, keep=True)
        with open(tree.root / "dev/sda", "r+b") as node:
            node.write(bytes(MIB))
        held.recheck()
        held.prove()


@pytest.mark.parametrize("away, marks", [(False, True), (True, False)])
def test_nothing_is_read_without_an_absence_or_without_marks(tree, monkeypatch, away, marks):
    monkeypatch.setattr(guard.block, "read", lambda *_: pytest.fail("it was read"))
    with held_at(tree) as held:
        marked(held, tree)
        if not marks:
            held.mark({})
        if away:
            come_back(tree, keep=False)
            held.recheck()
        held.prove()


@pytest.mark.parametrize("data", [False, True])
def test_blank_drive_is_known_by_nothing_being_there(tree, data):
    """Content that any blank disk has proves nothing, but somebody's data in its place do."""
    with held_at(tree) as held:
        held.mark({0: bytes(4096), 4096: b"\xff" * 4096})
        come_back(tree, keep=False)
        with open(tree.root / "dev/sda", "r+b") as node:
            node.write(b"FAMILY PHOTOS..." * 512 * data)
        held.recheck()
        with pytest.raises(ExchangedDrive) if data else contextlib.nullcontext():
            held.prove()


# --- enclosures


def test_enclosure_serial_is_marked_and_does_not_consent_to_the_loss_of_data(tree):
    docked(tree, "sdd", 0)
    drive = by_name(tree, "sdd")
    assert (drive.serial, drive.serial_source) == ("MSFT30012345678", "enclosure")
    assert drive.consent == f"MSFT30012345678+ASMT_2115+{64 * MIB}"
    assert against(tree, "sdd") == against(tree, "sdd", drive.serial) == against(tree, "sdd", drive.consent) == {}
    make_ext4(tree.root / "dev/sdd")
    assert list(against(tree, "sdd", drive.serial)) == ["signature"]
    assert guard.refusals(drive, drive.serial, tree.root)[0].override == f"--destroy-data {drive.consent}"
    assert against(tree, "sdd", drive.consent) == {}


def test_stranger_in_the_same_enclosure_has_another_consent(tree):
    docked(tree, "sdd", 0)
    before = by_name(tree, "sdd").consent
    tree.remove("sdd")
    docked(tree, "sdd", 0, size_bytes=128 * MIB)
    assert list(against(tree, "sdd", before)) == ["destroy-data"]


def test_content_after_an_absence_is_a_mark_only_once_the_drive_is_proven(tree):
    docked(tree, "sdd", 0)
    with held_at(tree, "sdd") as held:
        tree.remove("sdd")
        docked(tree, "sdd", 0)
        held.recheck()
        held.mark({0: b"a stranger's" * 400})
        with pytest.raises(ExchangedDrive):
            held.prove()
        held.mark({}, proven=True)
        held.prove()


def test_stranger_in_the_same_enclosure_is_refused_where_no_mark_tells(tree):
    docked(tree, "sdd", 0)
    with held_at(tree, "sdd") as held:
        held.prove()
        tree.remove("sdd")
        docked(tree, "sdd", 0)
        held.recheck()
        for _ in range(2):
            with pytest.raises(ExchangedDrive):
                held.prove()


def bytes_of_a_plan(tree, name):
    """The same content at the same places, whichever drive is filled: fio's, of one seed."""
    content = {at: bytes([at // MIB + 1, 7]) * 2048 for at in (0, 8 * MIB)}
    with open(tree.root / "dev" / name, "r+b") as node:
        for at, block in content.items():
            node.seek(at)
            node.write(block)
    return content


def test_twin_at_another_port_of_the_same_serial_is_not_written(tree):
    """Two bridges of one serial: one is away, the other gets its name; a plan of the same seed has filled both."""
    docked(tree, "sdd", 0, port=1)
    with held_at(tree, "sdd") as held:
        held.mark(bytes_of_a_plan(tree, "sdd"))
        tree.remove("sdd")
        docked(tree, "sdd", 0, port=2)
        bytes_of_a_plan(tree, "sdd")
        for _ in range(2):
            with pytest.raises(ExchangedDrive, match="port"):
                held.recheck()


@pytest.mark.parametrize("same", [True, False])
def test_marks_are_read_by_the_process_that_goes_on(tree, same):
    docked(tree, "sdd", 0)
    with held_at(tree, "sdd") as held:
        held.mark(bytes_of_a_plan(tree, "sdd"))
        digests = held.digests()
    assert sorted(digests) == [0, 8 * MIB]
    if not same:
        (tree.root / "dev/sdd").write_bytes(bytes(64 * MIB))
    with held_at(tree, "sdd") as held:
        with contextlib.nullcontext() if same else pytest.raises(ExchangedDrive, match="2 places"):
            held.prove_digests(digests)
        with pytest.raises(ExchangedDrive):
            held.prove_digests({})


def test_drive_with_a_serial_of_its_own_needs_no_digests(tree):
    with held_at(tree) as held:
        marked(held, tree)
        assert held.digests() is None
        held.prove_digests({})


WWNS_OF_BRIDGES = ("naa.5000000000000001", "naa.3000000000000000", "eui.0000000001000000", "eui.0000000000000001")
WWNS_OF_DISKS = ("naa.5002538e00000001", "naa.3000c500a0b1c2d3", "eui.0025385b71b00001")
WWNS_OF_DISKS += (f"eui.{16 * '0'}8ce38e03009a1f01",)
WWNS_OF_DISKS += ("uuid.11111111-2222-3333-4444-555555555555", "naa.60014050001a2b3c4d5e6f7081920a1b")


@pytest.mark.parametrize("wwn", [*WWNS_OF_BRIDGES, ""])
def test_stranger_behind_a_bridge_with_a_constant_wwn_is_refused_where_no_mark_tells(tree, wwn):
    docked(tree, "sdd", 0, wwn=wwn)
    with held_at(tree, "sdd") as held:
        tree.remove("sdd")
        docked(tree, "sdd", 0, wwn=wwn)
        held.recheck()
        with pytest.raises(ExchangedDrive):
            held.prove()


@pytest.mark.parametrize("wwn", [*WWNS_OF_BRIDGES, *WWNS_OF_DISKS])
def test_wwn_is_the_units_own_only_with_a_makers_number(wwn):
    assert identity.own_wwn(a_drive(wwn=wwn)) == (wwn if wwn in WWNS_OF_DISKS else "")


def test_disk_that_is_exchanged_behind_a_bridge_that_stays_is_asked_again(tree, monkeypatch):
    """The bridge keeps the kernel's disk, its name and its diskseq."""
    docked(tree, "sdd", 0)
    own = [identify_page("BAYA0001", "F1", "Disk A")[60:572]]
    monkeypatch.setattr(inventory, "_ata_asked", lambda *_: own[0])
    monkeypatch.setattr(inventory, "_asked", lambda name, *_: inventory.data(f"/dev/{name}", 8, 48, "7"))
    assert by_name(tree, "sdd").serial == by_name(tree, "sdd").serial == "BAYA0001"
    with held_at(tree, "sdd") as held:
        held.recheck()
        own[0] = identify_page("STRANGER1", "F1", "Disk A")[60:572]
        with pytest.raises(ExchangedDrive):
            held.recheck()


PAGES = [("OWN0001", "drive"), ("MSFT30012345678", "enclosure"), ("", "enclosure")]
PAGES += [("MSFT30012345", "enclosure"), ("00MSFT30012345678", "enclosure"), ("30012345678 ", "enclosure")]


@pytest.mark.parametrize("page, source", PAGES)
def test_page_80h_is_the_disks_own_unless_it_repeats_the_enclosures(tree, page, source):
    docked(tree, "sdd", 0, serial=page)
    assert by_name(tree, "sdd").serial_source == source


def test_disks_in_one_dock_that_can_be_asked_are_no_twins(tree, monkeypatch):
    """IDENTIFY through the bridge tells them apart."""
    docked(tree, "sdd", 0)
    docked(tree, "sde", 1)
    own = {"sdd": identify_page("BAYA0001", "F1", "Disk A"), "sde": identify_page("BAYB0001", "F1", "Disk B")}
    monkeypatch.setattr(inventory, "_asked", lambda name, *_: own[name][60:572] if name in own else b"")
    drive = by_name(tree, "sdd")
    assert (drive.serial, drive.serial_source, drive.model) == ("BAYA0001", "identify", "Disk A")
    assert drive.enclosure_serial == "MSFT30012345678"
    assert drive.consent == "BAYA0001" and against(tree, "sdd") == against(tree, "sde") == {}
    with held_at(tree, "sdd") as held:  # the disk in the bay is exchanged: the dock's facts are all the same
        own["sdd"] = identify_page("STRANGER1", "F1", "Disk A")
        with pytest.raises(ExchangedDrive):
            held.recheck(follow=True)


def test_identify_answer_is_checked_for_its_sum():
    data = bytearray(identify_page("S1", "F1", "M")[60:572])
    assert inventory.whole(bytes(data))
    data[510] = 0xA5
    data[511] = -sum(data[:511]) % 256
    assert inventory.whole(bytes(data))
    data[30] ^= 1
    assert not inventory.whole(bytes(data))
    assert not inventory.whole(bytes(512)) and not inventory.whole(b"")


# --- locks


def test_lock_is_the_drives_whatever_the_spelling_of_its_serial():
    assert guard.name(" ab  c1 ") == guard.name("AB C1") != guard.name("ABC1")


def test_tag_of_a_disk_with_its_enclosures_serial_tells_it_from_a_stranger(tree):
    docked(tree, "sdd", 0)
    header = {"drive": dataclasses.asdict(by_name(tree, "sdd"))}
    assert drive_tag(header) == f"ASMT 2115 MSFT30012345678+ASMT_2115+{64 * MIB}"
    header["drive"]["serial_source"] = "identify"
    assert drive_tag(header) == "ASMT 2115 MSFT30012345678"
