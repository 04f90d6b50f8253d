"""For tests of SMART points: documents of ATA and NVMe drives."""

from ssdrig.publish.influx import smart_points


def row(number, name, raw, value=100, worst=100, thresh=0, flags="-O--CK ", failed=""):
    """A line of smartctl 7.3's ata_smart_attributes.table."""
    whole = raw if isinstance(raw, int) else 0
    out = {
        "id": number,
        "name": name,
        "value": value,
        "worst": worst,
        "thresh": thresh,
        "when_failed": failed,
        "flags": {"value": 50, "string": flags},
        "raw": {"value": whole, "string": str(raw)},
    }
    return {key: item for key, item in out.items() if item is not None}


def ata(*rows, exit_status=0, **more):
    return {
        "smartctl": {
            "json_format_version": [1, 0],
            "smartctl": {"version": [7, 3], "exit_status": exit_status},
            "device": {"name": "/dev/sdb", "info_name": "/dev/sdb [SAT]", "type": "sat", "protocol": "ATA"},
            "model_name": "APPLE SSD SM256E",
            "serial_number": "S0X5NZBC422720",
            "wwn": {"naa": 5, "oui": 9528, "id": 1124617520},
            "user_capacity": {"blocks": 490234752, "bytes": 251000193024},
            "smart_support": {"available": True, "enabled": True},
            "smart_status": {"passed": True},
            "ata_smart_attributes": {"revision": 1, "table": list(rows)},
            **more,
        }
    }


NVME_LOG = {
    "critical_warning": 9,
    "temperature": 38,
    "available_spare": 100,
    "available_spare_threshold": 10,
    "percentage_used": 16,
    "data_units_read": 7193048,
    "data_units_written": 113662783,
    "host_reads": 60131549,
    "host_writes": 2219922465,
    "controller_busy_time": 35754,
    "power_cycles": 472,
    "power_on_hours": 6038,
    "unsafe_shutdowns": 355,
    "media_errors": 0,
    "num_err_log_entries": 119699,
    "warning_temp_time": 11,
    "critical_comp_time": 7,
    "temperature_sensors": [29, 30],
}


def nvme(**log):
    return {
        "drive": {
            "model": "TS128GMTE850",
            "serial": "D704940282",
            "node": "/dev/nvme0n1",
            "capacity_bytes": 128035676160,
        },
        "smartctl": {
            "smartctl": {"version": [7, 3], "exit_status": 8},
            "device": {"name": "/dev/nvme0", "type": "nvme", "protocol": "NVMe"},
            "model_name": "TS128GMTE850",
            "serial_number": "D704940282",
            "smart_status": {"passed": False, "nvme": {"value": 9}},
            "nvme_smart_health_information_log": NVME_LOG | log,
        },
    }


def attributes(document):
    points = smart_points.attribute_points(document, smart_points.identity(document))
    return {tags["name"]: (tags, fields) for tags, fields in points}


def device(document):
    return smart_points.device_point(document, smart_points.identity(document))


APPLE = ata(  # the drive of Telegraf's TestGatherAttributes
    row(1, "Raw_Read_Error_Rate", 0, 200, 200, 0, "-O-RC- "),
    row(5, "Reallocated_Sector_Ct", 0, flags="PO--CK "),
    row(9, "Power_On_Hours", 2988, 99, 99),
    row(12, "Power_Cycle_Count", 14879, 85, 85),
    row(169, "Unknown_Attribute", 2044932921600, 253, 253, 10, "PO--C- "),
    row(173, "Wear_Leveling_Count", 957808640337, 185, 185, 100),
    row(190, "Airflow_Temperature_Cel", "45 (Min/Max 43/57 #2689)", 55, 40, 45, "-O---K ", "past"),
    row(194, "Temperature_Celsius", "34 (Min/Max 14/79)", 66, 21, 0, "-O---K "),
    row(197, "Current_Pending_Sector", 0, flags="-O---K "),
    row(199, "UDMA_CRC_Error_Count", 0, 200, 200, 0, "-O-RC- "),
    row(240, "Head_Flying_Hours", "6585h+55m+23.234s", 100, 253, 0, "------ "),
)
