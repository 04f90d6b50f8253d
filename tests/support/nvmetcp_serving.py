"""A virtual drive over NVMe/TCP for the tests of it, and hosts of it."""

import pytest
from nvmetcp_initiator import Host, NvmeError
from serving import Serving


def number(page: bytes, first: int, last: int) -> int:
    return int.from_bytes(page[first : last + 1], "little")


def address(server) -> tuple[str, int]:
    host, port = server.ready["nvme_tcp"].split(":")
    return host, int(port)


def host_of(server, *args, **how) -> Host:
    return Host(address(server), server.ready["nqn"], *args, **how)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One fast server for the tests that leave it as it was."""
    server = Serving(
        tmp_path_factory.mktemp("nvmetcp"),
        "--preset",
        "sata-tlc",
        "--capacity",
        "1GiB",
        "--no-latency",
        "--nvme-tcp",
        "127.0.0.1:0",
    )
    yield server
    server.end()


@pytest.fixture
def host(shared):
    with host_of(shared, 2) as it:
        yield it


def refused(code: int, do, *args, retry: bool = False, **how) -> NvmeError:
    with pytest.raises(NvmeError) as error:
        do(*args, **how)
    assert error.value.status == code, error.value
    assert error.value.do_not_retry != retry
    return error.value
