"""Keys and words of a pass. A report imports these alone, without compiled code."""

SLOW = 3.0  # times the P99 of the baseline
WORDS = {
    "UNREADABLE": "the drive refuses to read it",
    "CORRUPT": "the drive gives bytes that were never written, and no error",
    "MISDIRECTED": "the drive gives the data of another address",
    "FOREIGN": "the drive gives a record of another test: someone has written since",
    "ZEROS": "the drive gives zeros",
    "ONES": "the drive gives ones",
    "OTHER": "the drive gives another version: someone has written since",
}
UNITS = ("MBps", "p50_us", "p99_us", "max_us")
