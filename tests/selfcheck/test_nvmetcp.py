"""The virtual drive over NVMe/TCP: framing, fabrics commands and connections over a real socket, bytes at the offsets
of the specification (NVMe/TCP Transport 1.0, NVMe over Fabrics 1.1); and the words of the command."""

import json
import struct
import subprocess
import sys
import time

import pytest
from nvmetcp_initiator import HOSTNQN, Host, NvmeError, Queue, Terminated, capsule, sqe
from nvmetcp_serving import address, host_of, refused, shared  # noqa: F401  fixture
from serving import PATIENCE_S
from serving import refused as refused_words

pytestmark = pytest.mark.keeps_time

# --- the transport


def test_what_the_server_says_of_itself(shared):
    ready = shared.ready
    assert (
        ready["nvme_connect"]
        == f"nvme connect -t tcp -a 127.0.0.1 -s {address(shared)[1]} -n {ready['nqn']} --reconnect-delay=1"
        " --ctrl-loss-tmo=60"
    )
    stderr = (shared.folder / "err").read_text()
    assert ready["nvme_connect"] in stderr and "modprobe nvme-tcp" in stderr and "erase" not in stderr


def test_data_starts_where_the_host_wants_it(shared):
    for hpda, start in ((0, 24), (5, 24), (31, 128)):
        with Queue(address(shared), nqn=shared.ready["nqn"], hpda=hpda) as admin:
            admin.enable()
            admin.send(sqe(0x06, 77, cdw10=1, length=4096))
            kind, head, data = admin.pdu()
            assert (kind, head[1], head[2], head[3]) == (7, 4, 24, start) and len(data) == 4096
            assert struct.unpack_from("<HHII", head, 8) == (77, 0, 0, 4096)


def test_flow_control_of_the_submission_queue(shared):
    with Queue(address(shared), nqn=shared.ready["nqn"], sqsize=3) as queue:  # of 4 entries; 0's based
        heads = [queue.sqhd]
        for _ in range(5):
            queue.get_property(0x08, 4)
            heads.append(queue.sqhd)
        assert heads == [1, 2, 3, 0, 1, 2]
    with Queue(address(shared), nqn=shared.ready["nqn"], attributes=4) as queue:  # flow control disabled
        queue.get_property(0x08, 4)
        assert queue.sqhd == 0xFFFF


IC = struct.pack("<BBBBIHBBI112x", 0, 0, 128, 0, 128, 0, 0, 0, 0)


@pytest.mark.parametrize(
    "greet,words,fes,fei",
    [
        (False, b"\x04" + IC[1:], 1, 2),  # a command before ICReq: 128 is not its header
        (False, capsule(sqe(0x18, 1)), 2, 0),
        (False, IC[:8] + struct.pack("<H", 7) + IC[10:], 6, 8),  # unknown version of the PDU format
        (False, IC[:10] + b"\x20" + IC[11:], 1, 10),  # alignment beyond 128 bytes
        (True, IC, 2, 0),  # twice
        (True, b"\x0a\0\x18\0\x18\0\0\0", 1, 0),  # no such type
        (True, b"\x05\0\x18\0\x18\0\0\0", 1, 0),  # a type that only controllers send
        (True, b"\x04\x01\x48\0\x48\0\0\0", 1, 1),  # a digest, which was not agreed on
        (True, b"\x04\0\x47\0\x48\0\0\0", 1, 2),  # header length
        (True, b"\x04\0\x48\0\x47\0\0\0", 1, 4),  # PDU shorter than its header
        (True, b"\x04\0\x48\x48\xff\xff\xff\xff", 1, 4),  # 4 GiB
        (True, b"\x04\0\x48\x49\x50\0\0\0", 1, 3),  # data offset
        (True, b"\x06\x04\x18\x18\x19\0\x10\0", 5, 0),  # more data than MAXH2CDATA
        (True, b"\x06\x04\x18\x18\x1a\0\0\0" + bytes(18), 1, 10),  # a transfer tag that was not given
    ],
)
def test_broken_framing_ends_the_connection_with_the_reason(shared, greet, words, fes, fei):
    with Queue(address(shared), initialise=greet, connect=False) as queue:
        queue.sock.sendall(words)
        with pytest.raises(Terminated) as ended:
            queue.pdu()
        assert (ended.value.fes, ended.value.fei) == (fes, fei)
        assert ended.value.culprit == words[: len(ended.value.culprit)] and len(ended.value.culprit) >= 8
        queue.sock.settimeout(PATIENCE_S)
        assert queue.sock.recv(1) == b""  # nothing more comes


def test_who_asks_for_digests_gets_none(shared):
    with Queue(address(shared), initialise=False) as queue:
        queue.sock.sendall(IC[:11] + b"\x03" + IC[12:])
        assert queue._receive(128)[11] == 0


# --- fabrics


@pytest.mark.parametrize(
    "how,code,result",
    [
        ({"recfmt": 1}, 0x180, 0),
        ({"nqn": "nqn.2014-08.org.nvmexpress:uuid:nobody"}, 0x182, 1 << 16 | 256),
        ({"hostnqn": "iqn.2014-08.org.nvmexpress:uuid:6a1f5f4e-36f4-4b8f-9f3e-0d7f0f2f7a11"}, 0x182, 1 << 16 | 512),
        ({"hostid": bytes(16)}, 0x182, 1 << 16),
        ({"cntlid": 5}, 0x182, 1 << 16 | 16),  # the controllers are dynamic
        ({"sqsize": 0}, 0x182, 44),
        ({"sqsize": 128}, 0x182, 44),
        ({"qid": 1, "cntlid": 0xABC}, 0x182, 1 << 16 | 16),
    ],
)
def test_connect_refuses(shared, how, code, result):
    error = refused(code, Queue, address(shared), **{"nqn": shared.ready["nqn"]} | how)
    assert error.result == result


def test_io_queues_belong_to_one_host_and_are_counted(shared):
    with host_of(shared, 2) as host:
        how = {"nqn": shared.ready["nqn"], "cntlid": host.admin.cntlid}
        other = HOSTNQN[:-1] + "2"
        assert refused(0x182, Queue, address(shared), 2, hostnqn=other, **how).result == 1 << 16
        assert refused(0x182, Queue, address(shared), 1, **how).result == 42  # in use
        assert refused(0x182, Queue, address(shared), 3, **how).result == 42  # more than granted
        host.io.pop().sock.close()
        deadline = time.monotonic() + PATIENCE_S
        while len(host.io) < 2 and time.monotonic() < deadline:  # the server sees the end a moment later
            try:
                host.io.append(Queue(address(shared), 2, **how))
            except NvmeError as error:
                assert error.result == 42
        assert host.io[1].read(0, 1) == bytes(512)
        refused(
            0x00C,
            host.io[1].run,
            struct.pack("<BBHB19xQI3xBHHHBBI12x", 0x7F, 0x40, 9, 1, 0, 1024, 1, 0, 2, 31, 0, 0, 0),
            bytes(1024),
        )


def test_properties(shared):
    with Queue(address(shared), nqn=shared.ready["nqn"]) as admin:
        cap = admin.get_property(0x00, 8)
        assert cap & 0xFFFF == 127 and cap >> 16 & 1 and cap >> 24 & 0xFF == 40 and cap >> 37 & 1
        assert admin.get_property(0x08, 4) == 0x10400
        assert admin.get_property(0x1C, 4) == 0
        refused(0x00C, admin.log, 2)  # not enabled
        refused(0x002, admin.set_property, 0x14, 0x00450001)  # 32-byte submission entries
        admin.enable()
        assert admin.get_property(0x14, 4) == 0x460001
        for offset, size in ((0x00, 4), (0x14, 8), (0x20, 4), (0x30, 8)):
            refused(0x002, admin.get_property, offset, size)
        refused(0x002, admin.set_property, 0x1C, 1)
        admin.set_property(0x14, 0x00460000)
        assert admin.get_property(0x1C, 4) == 0


def test_a_reset_ends_the_io_queues_but_not_the_admin_queue(shared):
    with host_of(shared, 1) as host:
        assert len(host.io[0].read(0, 1)) == 512
        host.admin.set_property(0x14, 0x00460000)
        with pytest.raises(ConnectionError):
            for _ in range(1000):
                host.io[0].read(0, 1)
                time.sleep(0.01)
        host.admin.enable()
        assert len(host.admin.log(2)) == 512


def test_a_controller_ends_with_its_admin_queue(shared):
    with host_of(shared, 1) as host:
        assert len(host.io[0].read(0, 1)) == 512
        host.admin.sock.close()
        with pytest.raises(ConnectionError):
            for _ in range(1000):
                host.io[0].read(0, 1)
                time.sleep(0.01)


def test_a_silent_host_is_dropped(shared):
    """The one that is not silent has time: a busy machine may keep it from a word for a second."""
    with host_of(shared, 1) as silent, host_of(shared, 1, kato_ms=1500) as alive:
        assert alive.admin.admin(0x0A, cdw10=0x0F)[0] == 1500
        silent.admin.admin(0x09, cdw10=0x0F, cdw11=300)  # its last word
        start = time.monotonic()
        while time.monotonic() - start < 2.0:
            alive.admin.admin(0x18)
            time.sleep(0.05)
        assert silent.admin.sock.recv(1) == b"" and silent.io[0].sock.recv(1) == b""
        assert alive.io[0].read(0, 1) == bytes(512)


def test_seventeen_hosts_are_one_too_many(shared):
    admins = []
    try:
        admins += [Queue(address(shared), nqn=shared.ready["nqn"]) for _ in range(16)]
        assert len({admin.cntlid for admin in admins}) == 16
        refused(0x181, Queue, address(shared), nqn=shared.ready["nqn"], retry=True)
    finally:
        for admin in admins:
            admin.sock.close()


# --- the command


def test_words_that_do_not_fit():
    for words, seen in (
        (("--preset", "sata-tlc"), "neither"),
        (("--preset", "sata-tlc", "--nvme-tcp", "localhost"), "localhost"),
        (("--preset", "sata-tlc", "--nvme-tcp", "127.0.0.1:http"), "127.0.0.1:http"),
        (("--preset", "sata-tlc", "--nvme-tcp", "127.0.0.1:99999"), "127.0.0.1:99999"),
        (("--preset", "sata-tlc", "--capacity", "1GiB", "--nvme-tcp", "192.0.2.1:4420"), "192.0.2.1:4420"),
    ):
        error = refused_words(*words)
        assert error.exit_code == 2 and seen in str(error)


def test_without_a_socket_path_there_is_nvme_alone(tmp_path):
    words = [
        sys.executable,
        "-m",
        "ssdrig.virtual.serve",
        "--preset",
        "sata-tlc",
        "--capacity",
        "1GiB",
        "--nvme-tcp",
        "0.0.0.0:0",
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        try:
            ready = json.loads(process.stdout.readline())
            assert ready["socket"] is None and ready["admin"] is None
            port = int(ready["nvme_tcp"].split(":")[1])
            with Host(("127.0.0.1", port), ready["nqn"]) as host:
                assert host.io[0].read(0, 1) == bytes(512)
        finally:
            process.terminate()
        assert "anyone who reaches 0.0.0.0" in process.stderr.read()  # not the loopback: it says what that means
    assert process.returncode == 0 and not list(tmp_path.iterdir())
