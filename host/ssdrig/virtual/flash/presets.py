"""The drives that can be simulated: full-size facts with their source, and a small default capacity for the bench.

A scaled-down drive keeps dies, channels, timings, powers and over-provisioning of the full-size one; only the number
and size of the blocks shrink, so rates and watts are those of the full-size drive and only the time scale of plateau,
cliff and steady state is shorter. Sources: [1] datasheets and measurements collected as timing and power tables of NAND
classes (Micron 128 Gb MLC L85 datasheet, HP NAND white paper, Samsung 850 Pro/EVO and 970 EVO Plus measurements by
Tom's Hardware and AnandTech), [2] NVMeVirt ssd_config.h, [3] SimpleSSD pal/config.cc (25 mA at 3.3 V per operation and
die)."""

from dataclasses import dataclass, replace

from ssdrig.base.errors import UsageError
from ssdrig.base.words import do_you_mean

MiB, GiB = 1 << 20, 1 << 30
PAGE = 4096


@dataclass(frozen=True)
class PowerState:
    """One NVMe power state: as in the descriptor in Identify Controller, and as the drive behaves. `idle_ms`: of
    idleness in the state above, until the drive goes to this one on its own, as it comes."""

    max_mW: int
    operational: bool
    enter_us: int = 0
    exit_us: int = 0
    idle_ms: int = 0


@dataclass(frozen=True)
class Preset:
    """A drive model. Times ns, energies and powers as named, sizes bytes; pages are logical pages of 4 KiB."""

    name: str
    model: str
    source: str
    interface: str  # "SATA" or "NVMe"
    rail_V: float
    full_capacity_bytes: int  # the drive that the numbers describe
    rated_tbw_TB: float  # of the full-size drive
    rated_pe_cycles: int
    time_dilation: int  # real seconds per second of the model
    capacity_bytes: int  # default of the scaled-down drive
    op: float  # (raw - user) / user, hidden from the host
    block_pages: int  # pages of a GC unit (superblock) of the scaled-down drive
    full_block_pages: int  # pages of a full-size erase block of one die (all planes)
    dies: int
    channels: int
    planes: int
    nand_page_bytes: int
    pages_per_cell: int  # NAND pages of one one-shot program: 1 (MLC page by page), 3 (TLC one-shot)
    t_R_ns: int
    t_PROG_ns: int
    t_BERS_ns: int
    suspend_ns: int  # a read waits at most this long for a running program
    channel_B_per_s: int
    link_B_per_s: int
    cmd_read_ns: int  # controller time per command: bounds IOPS
    cmd_write_ns: int
    fw_overhead: float  # calibration: extra die time per relocated page, as a share of its NAND time
    cache_bytes: int  # volatile write cache
    plp: bool
    P_read_mW: int  # per busy die
    P_prog_mW: int
    P_erase_mW: int
    e_io_pJ_per_B: int  # NAND bus
    P_active_mW: int  # controller at work, above idle
    P_idle_mW: int  # controller, DRAM and link, no work
    power_states: tuple[PowerState, ...] = ()  # PS1 and up; PS0 is at work (power_states.py)
    slc_blocks: int = 0  # GC units of pSLC cache, each holding block_pages / 3 pages, of an empty drive
    slc_borrowed: int = 0  # of them, units that a full drive has not: the cache shrinks as it fills up
    t_PROG_SLC_ns: int = 0
    gc_policy: str = "greedy"  # or "fifo"
    gc_reserve: int = 2  # foreground collection keeps this many blocks free
    gc_low: int = 0  # paced collection starts below this many free blocks ...
    gc_high: int = 0  # ... and stops at this many
    gc_pace: float = 0.0  # relocations per host page as a multiple of what holds the level; 0: foreground only
    idle_gc_share: float = 0.0  # when idle, collect until this share of the spare blocks is free; 0: off
    idle_ns: int = 500_000_000  # without host commands for this long = idle
    refresh_idle_ns: int = 30_000_000_000  # idle for this long, it refreshes what needs read-retries: assumed
    wl_threshold: int = 100  # P/E cycles below the mean before static wear levelling moves a block
    K_per_W: float = 10.0  # of the drive against the air, and its time constant: assumed, no heatsink
    thermal_tau_s: float = 40.0
    throttle_shares: tuple[float, float] = (0.6, 0.15)  # of its speed when warm and when hot (assumed)
    # capacitors of a drive with power-loss protection (capacitor.py)
    cap_uF: float = 0.0
    cap_V: float = 0.0  # charged
    cap_V_min: float = 0.0  # below it the converters stop
    cap_charge_mW: int = 0  # of the charger
    energy_report: float = 1.0  # what the drive reports that it draws, as a multiple of its draw
    power_log: str = ""  # whether it has log 25h, "measured" or "estimated"
    power_error_percent: int = 255  # as log 25h states it; 255: not
    latency_monitor: bool = False  # whether it has OCP's log C3h
    rated_years: float = 5.0  # of warranty: assumed
    boot_ns: int = 150_000_000  # from power to the first command, without replay of the map: assumed
    more_rails: tuple[
        tuple[str, float, float], ...
    ] = ()  # name, V, share of the drive's power that it draws there and not at rail_V

    def __post_init__(self):
        object.__setattr__(self, "more_rails", tuple(map(tuple, self.more_rails)))  # a snapshot's JSON has lists
        object.__setattr__(self, "throttle_shares", tuple(self.throttle_shares))
        known = (state if isinstance(state, PowerState) else PowerState(**state) for state in self.power_states)
        object.__setattr__(self, "power_states", tuple(known))

    def rated_write_bytes(self, capacity_bytes: int) -> int:
        """Host bytes that a drive of this capacity is rated for: scaled down as the drive is."""
        return int(self.rated_tbw_TB * 1e12 * capacity_bytes / self.full_capacity_bytes)

    @property
    def drive_class(self) -> str:
        """A class of JESD218."""
        return "enterprise" if self.plp else "client"

    @property
    def slc_reserve_units(self) -> int:
        """GC units of pSLC cache that a full drive has."""
        return self.slc_blocks - self.slc_borrowed

    @property
    def program_pages(self) -> int:
        """Logical pages of one one-shot program."""
        return self.planes * self.nand_page_bytes * self.pages_per_cell // 4096

    def geometry(self, capacity_bytes: int | None = None) -> tuple[int, int, int]:
        """(logical pages, GC units without the pSLC cache's, bytes of raw NAND) of a drive of this capacity, None: the
        preset's. Raises UsageError if there can be none."""
        capacity_bytes = self.capacity_bytes if capacity_bytes is None else capacity_bytes
        pages = capacity_bytes // PAGE
        units = int(pages * (1 + self.op)) // self.block_pages
        spare = units - pages / self.block_pages
        if units * self.block_pages >= 1 << 31:
            raise UsageError("less than 8 TiB of NAND", f"{capacity_bytes} bytes", "choose a smaller capacity")
        if capacity_bytes % PAGE or spare < max(self.gc_reserve, self.gc_high) + 2:
            raise UsageError(
                f"a capacity in 4 KiB pages with at least {max(self.gc_reserve, self.gc_high) + 2} spare blocks of "
                f"{self.block_pages} pages",
                f"{capacity_bytes} bytes with {spare:.1f} spare blocks",
                "choose a larger capacity",
            )
        return pages, units, (units + self.slc_reserve_units) * self.block_pages * PAGE


# Slumber: 20 to 60 mW [1]; the interface may take 10 ms to leave it (Serial ATA Specification 3.x); the time to enter
# it and the idleness before it are assumed.
SATA_STATES = (PowerState(50, False, 1000, 10_000, 2000),)

SATA_MLC = Preset(
    name="sata-mlc",
    model="SIMULATED SATA MLC 256 GB",
    source=(
        "2013-class client MLC: 16 dies x 2 planes x 16 KiB, tR 75, tPROG 1300, tBERS 3000 us (Micron 128 Gb MLC class"
        " [1]); plateau and steady state calibrated to the SanDisk X210 256 GB (22 000 and 4 445 IOPS, Tom's Hardware)"
    ),
    interface="SATA",
    rail_V=5.0,
    full_capacity_bytes=256_000_000_000,
    rated_tbw_TB=80,
    rated_pe_cycles=3000,
    time_dilation=1,
    capacity_bytes=5 * GiB,
    op=0.0737,
    block_pages=256,
    full_block_pages=4096,
    dies=16,
    channels=8,
    planes=2,
    nand_page_bytes=16384,
    pages_per_cell=1,
    t_R_ns=75_000,
    t_PROG_ns=1_300_000,
    t_BERS_ns=3_000_000,
    suspend_ns=1_300_000,
    channel_B_per_s=166_000_000,
    link_B_per_s=550_000_000,
    cmd_read_ns=11_000,
    cmd_write_ns=45_000,
    fw_overhead=2.2,
    cache_bytes=4 * MiB,
    plp=False,
    P_read_mW=90,
    P_prog_mW=110,
    P_erase_mW=100,
    e_io_pJ_per_B=100,
    P_active_mW=450,
    P_idle_mW=500,
    power_states=SATA_STATES,
    gc_low=4,
    gc_high=20,
    gc_pace=1.5,
    idle_gc_share=0.3,
)

SATA_TLC = Preset(
    name="sata-tlc",
    model="SIMULATED SATA TLC 240 GB",
    source=(
        "client 3D TLC: 8 dies x 2 planes x 16 KiB x 3 one-shot, tR 70, tPROG 2000, tBERS 5000 us, 256 GiB of NAND sold"
        " as 240 GB [1]; steady state calibrated to the 3 000 to 8 000 IOPS at 7 % spare of client SATA drives"
    ),
    interface="SATA",
    rail_V=5.0,
    full_capacity_bytes=240_000_000_000,
    rated_tbw_TB=75,
    rated_pe_cycles=1000,
    time_dilation=1,
    capacity_bytes=5 * GiB,
    op=0.1453,
    block_pages=192,
    full_block_pages=6144,
    dies=8,
    channels=4,
    planes=2,
    nand_page_bytes=16384,
    pages_per_cell=3,
    t_R_ns=70_000,
    t_PROG_ns=2_000_000,
    t_BERS_ns=5_000_000,
    suspend_ns=300_000,
    channel_B_per_s=400_000_000,
    link_B_per_s=550_000_000,
    cmd_read_ns=11_000,
    cmd_write_ns=24_000,
    fw_overhead=1.5,
    cache_bytes=8 * MiB,
    plp=False,
    P_read_mW=90,
    P_prog_mW=110,
    P_erase_mW=100,
    e_io_pJ_per_B=80,
    P_active_mW=450,
    P_idle_mW=500,
    power_states=SATA_STATES,
    gc_low=4,
    gc_high=20,
    gc_pace=1.5,
    idle_gc_share=0.3,
)

NVME_TLC = Preset(
    name="nvme-tlc",
    model="SIMULATED NVMe TLC 1 TB",
    source=(
        "client NVMe 3D TLC: 32 dies x 4 planes x 16 KiB x 3, tR 50, tPROG 2000, tBERS 5000 us, PCIe 3 x4 (NVMeVirt"
        " constants [2], Samsung 970 EVO Plus power states: PS1 6.0 W, PS2 3.4 W, PS3 70 mW in 0.21 ms and back in"
        " 1.2 ms, PS4 10 mW in 2 ms and back in 8 ms [1]; the idleness before PS3 and PS4 is assumed), pSLC cache"
    ),
    interface="NVMe",
    rail_V=3.3,
    full_capacity_bytes=1_000_000_000_000,
    rated_tbw_TB=600,
    rated_pe_cycles=1500,
    time_dilation=10,
    capacity_bytes=6 * GiB,
    op=0.0737,
    block_pages=384,
    full_block_pages=12288,
    dies=32,
    channels=8,
    planes=4,
    nand_page_bytes=16384,
    pages_per_cell=3,
    t_R_ns=50_000,
    t_PROG_ns=2_000_000,
    t_BERS_ns=5_000_000,
    suspend_ns=100_000,
    channel_B_per_s=800_000_000,
    link_B_per_s=3_360_000_000,
    cmd_read_ns=1_800,
    cmd_write_ns=4_000,
    fw_overhead=1.0,
    cache_bytes=64 * MiB,
    plp=False,
    P_read_mW=140,
    P_prog_mW=180,
    P_erase_mW=150,
    e_io_pJ_per_B=80,
    P_active_mW=1300,
    P_idle_mW=1250,
    power_states=(
        PowerState(6000, True),
        PowerState(3400, True),
        PowerState(70, False, 210, 1200, 1000),
        PowerState(10, False, 2000, 8000, 2000),
    ),
    slc_blocks=48,
    t_PROG_SLC_ns=200_000,
    gc_low=4,
    gc_high=20,
    gc_pace=1.5,
    idle_gc_share=0.3,
)

ENTERPRISE_PLP = Preset(
    name="enterprise-plp",
    model="SIMULATED SATA DC MLC PLP 400 GB",
    source=(
        "SATA data-centre MLC with capacitors, 28 % over-provisioning: NAND as sata-mlc, steady state in the range of"
        " drives of the Intel DC S3700 and Micron M500DC class (about 35 000 IOPS, flat) [1]; capacitors assumed, with"
        " twice the energy that a full cache takes"
    ),
    interface="SATA",
    rail_V=5.0,
    full_capacity_bytes=400_000_000_000,
    rated_tbw_TB=1900,
    rated_pe_cycles=5000,
    time_dilation=1,
    capacity_bytes=4 * GiB,
    op=0.28,
    block_pages=256,
    full_block_pages=4096,
    dies=16,
    channels=8,
    planes=2,
    nand_page_bytes=16384,
    pages_per_cell=1,
    t_R_ns=75_000,
    t_PROG_ns=1_300_000,
    t_BERS_ns=3_000_000,
    suspend_ns=300_000,
    channel_B_per_s=333_000_000,
    link_B_per_s=550_000_000,
    cmd_read_ns=11_000,
    cmd_write_ns=16_000,
    fw_overhead=0.15,
    cache_bytes=8 * MiB,
    plp=True,
    P_read_mW=90,
    P_prog_mW=110,
    P_erase_mW=100,
    e_io_pJ_per_B=100,
    P_active_mW=700,
    P_idle_mW=900,
    cap_uF=600.0,
    cap_V=25.0,
    cap_V_min=9.0,
    cap_charge_mW=1500,
    gc_low=6,
    gc_high=64,
    gc_pace=1.02,
)

ENTERPRISE_50 = replace(
    ENTERPRISE_PLP,
    name="enterprise-50",
    model="SIMULATED SATA DC MLC PLP 400 GB, 50 cycles",
    source=ENTERPRISE_PLP.source + "; as enterprise-plp, but rated for 50 cycles, to be worn to its end in minutes, and"
    " with as few free blocks as a small drive can spare",
    rated_tbw_TB=12,
    rated_pe_cycles=50,
    capacity_bytes=512 * MiB,
    gc_low=4,
    gc_high=8,
)

U2_TLC = replace(
    NVME_TLC,
    name="u2-tlc",
    model="SIMULATED U.2 TLC 1 TB",
    source=NVME_TLC.source
    + "; as nvme-tlc but supplied as U.2 drives are (SFF-8639): 12 V, and 3.3 Vaux for the management"
    " interface, here by a constant share of the power (assumed)",
    rail_V=12.0,
    more_rails=(("3.3Vaux", 3.3, 0.003),),
)

NVME_TLC_BOASTS = replace(
    NVME_TLC,
    name="nvme-tlc-boasts",
    model="SIMULATED NVMe TLC 1 TB, reports 10 % too little",
    source=NVME_TLC.source + "; as nvme-tlc, but it reports 10 % less energy and power than it draws",
    energy_report=0.9,
    power_log="measured",
    power_error_percent=5,
)

NVME_TLC_ESTIMATES = replace(
    NVME_TLC,
    name="nvme-tlc-estimates",
    model="SIMULATED NVMe TLC 1 TB, estimates its power",
    source=NVME_TLC.source + "; with NVMe 2.3's power measurement, flagged as an estimate, and OCP's latency monitor",
    power_log="estimated",
    power_error_percent=15,
    latency_monitor=True,
)

NVME_TLC_SLC = replace(
    NVME_TLC,
    name="nvme-tlc-slc",
    model="SIMULATED NVMe TLC 500 GB with a large SLC cache",
    source=(
        "client NVMe 3D TLC with a hybrid pSLC cache: 8 dies x 4 planes x 16 KiB x 3, tPROG 2600 us, which writes"
        " 0.6 GB/s behind the cache, as the 970 EVO of this size; of the user bytes the cache holds 12 % on an empty"
        " drive, which shrink to 3 % on a full one (shares assumed); all else as nvme-tlc"
    ),
    full_capacity_bytes=500_000_000_000,
    rated_tbw_TB=300,
    capacity_bytes=4 * GiB,
    dies=8,
    channels=4,
    t_PROG_ns=2_600_000,
    cache_bytes=4 * MiB,
    block_pages=192,
    slc_blocks=1966,
    slc_borrowed=1474,
)

PRESETS = {
    p.name: p
    for p in (
        *(SATA_MLC, SATA_TLC, NVME_TLC, ENTERPRISE_PLP, ENTERPRISE_50, U2_TLC),
        *(NVME_TLC_BOASTS, NVME_TLC_ESTIMATES, NVME_TLC_SLC),
    )
}


def named(name: str) -> Preset:
    """The preset of a name. Raises UsageError."""
    if name not in PRESETS:
        raise UsageError("a preset of the virtual drive", name, do_you_mean(name, PRESETS))
    return PRESETS[name]
