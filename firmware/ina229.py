"""Texas Instruments INA229: the INA228 with SPI."""

from ina228 import INA228


class INA229(INA228):
    NAME = "INA229"
    IDS = 0x5449, 0x229
