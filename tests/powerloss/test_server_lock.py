"""powerloss/server_lock.py: one lock for each NBD server, however its address is spelled."""

import os
import socket
from pathlib import Path
from urllib.parse import quote

import pytest

from ssdrig.base.errors import UnsafeTarget
from ssdrig.powerloss.server_lock import ServerLock, names


@pytest.fixture
def served(tmp_path):
    folder = tmp_path / "ä b"
    folder.mkdir()
    path = folder / "sock"
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    yield path
    server.close()


def of(path, export=""):
    return f"nbd+unix:///{export}?socket={path}"


def same(one, other):
    return bool(set(names(one)) & set(names(other)))


def test_every_spelling_of_a_socket_is_one_server(served, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(served)
    (tmp_path / "folder").symlink_to(served.parent)
    os.link(served, tmp_path / "second")
    monkeypatch.chdir(served.parent)
    every = "".join(f"%{byte:02x}" for byte in os.fsencode(served))
    spelled = [quote(str(served)), every, f"{quote(str(served.parent))}/./sock", f"//{quote(str(served))}"]
    spelled += [f"{quote(str(served.parent))}/../{quote(served.parent.name)}/sock", tmp_path / "link", "sock", "./sock"]
    spelled += [tmp_path / "folder/sock", tmp_path / "second", f"{quote(str(served))}&x=1"]
    for path in spelled:
        assert same(of(quote(str(served))), of(path)), path
    assert same(of("sock", "a%20b"), of("sock", "%61 b")) and not same(of("sock", "a"), of("sock", "b"))
    (tmp_path / "other").touch()
    assert not same(of("sock"), of(tmp_path / "other"))


def test_a_server_that_makes_its_socket_anew_keeps_its_lock(served, tmp_path):
    with ServerLock(of(quote(str(served))), tmp_path / "locks"):
        served.unlink()
        with pytest.raises(UnsafeTarget, match="no other ssdrig"):
            ServerLock(of(quote(str(served))), tmp_path / "locks")
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(served))
        with pytest.raises(UnsafeTarget, match="no other ssdrig"):
            ServerLock(of(quote(f"{served.parent}/./sock")), tmp_path / "locks")
        server.close()
    ServerLock(of(quote(str(served))), tmp_path / "locks").close()


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST", "127.0.0.1", "[::1]", "127.1", "127.0.0.2", "[::ffff:127.0.0.1]", "[0:0:0:0:0:0:0:1]"],
)
def test_every_name_of_this_machine_is_one_server(host):
    assert same(f"nbd://{host}:10809/x", "nbd://127.0.0.1/x")
    assert not same(f"nbd://{host}:10810/x", "nbd://127.0.0.1/x")
    assert not same(f"nbd://{host}/y", "nbd://127.0.0.1/x") and not same(f"nbd://{host}/x", "nbd://192.0.2.1/x")


def test_every_address_of_a_host_is_locked(monkeypatch):
    rows = {"box": ["192.0.2.1", "2001:db8::1"], "box.lab": ["2001:db8:0::1"], "192.0.2.1": ["192.0.2.1"]}

    def resolved(host, port, **_):
        return [(0, 0, 0, "", (address, port)) for address in rows[host]]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    assert same("nbd://box/x", "nbd://box.lab/x") and same("nbd://box/x", "nbd://192.0.2.1/x")
    assert not same("nbd://box.lab/x", "nbd://192.0.2.1/x")


def test_a_lock_goes_through_no_link_and_into_no_folder_of_others(served, tmp_path):
    uri, locks = of(quote(str(served))), tmp_path / "locks"
    with ServerLock(uri, locks):
        made = sorted(locks.iterdir())
    for folder in made:
        assert folder.stat().st_mode & 0o777 == 0o600
        folder.unlink()
        folder.symlink_to(tmp_path / "victim")
    with pytest.raises(UnsafeTarget):
        ServerLock(uri, locks)
    assert not (tmp_path / "victim").exists()
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    with pytest.raises(UnsafeTarget, match="another user"):
        ServerLock(uri, open_to_all)


def test_a_squatted_abstract_socket_keeps_nobody_out(served, tmp_path):
    with socket.socket(socket.AF_UNIX) as squatter:
        squatter.bind("\0ssdrig-squatter")
        ServerLock("nbd+unix:///?socket=%00ssdrig-squatter", tmp_path / "locks").close()
    assert Path(tmp_path / "locks").is_dir()
