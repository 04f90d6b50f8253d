"""Status codes of completions, `status code type << 8 | status code`, and the Do Not Retry bit.

Source: NVM Express Base Specification 2.0, figures "Generic Command Status Values", "Command Specific Status Values"
and "Media and Data Integrity Errors"; Connect's own from NVMe over Fabrics. In a completion the value is one bit
higher, above the phase tag, which fabrics do not use."""

DNR = 1 << 14

INVALID_OPCODE = 0x001
INVALID_FIELD = 0x002
ABORT_REQUESTED = 0x007
INVALID_NAMESPACE = 0x00B
SEQUENCE_ERROR = 0x00C
INVALID_SGL_TYPE = 0x011
DATA_SGL_LENGTH_INVALID = 0x00F
INVALID_SGL_OFFSET = 0x016
SANITIZE_IN_PROGRESS = 0x01D
LBA_OUT_OF_RANGE = 0x080
FORMAT_IN_PROGRESS = 0x084
ASYNC_LIMIT = 0x105
INVALID_LOG_PAGE = 0x109
INVALID_FORMAT = 0x10A
FEATURE_NOT_SAVEABLE = 0x10D
CONNECT_INCOMPATIBLE_FORMAT = 0x180
CONNECT_CONTROLLER_BUSY = 0x181
CONNECT_INVALID_PARAMETERS = 0x182
WRITE_FAULT = 0x280
UNRECOVERED_READ_ERROR = 0x281


class Refused(Exception):
    """A command ends with `code` (DNR included); `dw0` goes into the completion, `at` is the byte of the command or,
    with `in_data`, of its data that is wrong."""

    def __init__(self, code: int, at: int | None = None, dw0: int = 0, retry: bool = False):
        super().__init__(f"status {code:03x}h")
        self.code, self.at, self.dw0 = (code if retry else code | DNR), at, dw0
