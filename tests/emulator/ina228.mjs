// Texas Instruments INA228 sensors (SLYS021) on an I2C block of rp2040js, as much of them as sampling needs: identification, pointer,
// conversions by ADC_CONFIG, DIAG_ALRT with its latched ALERT line, and results that tell their conversion's number.

const CT_us = [50, 84, 150, 280, 540, 1052, 2074, 4120];
const WIDTH = { 4: 3, 5: 3, 7: 3, 8: 3, 9: 5, 10: 5 };
const CNVR = 1 << 14;
const CNVRF = 1 << 1;

// What the nth conversion (from 0) reads. CHARGE counts conversions since RSTACC, ENERGY 16 times as many.
export const vbusOf = (n) => 20000 + (n % 30011);
export const currentOf = (n) => ((n * 37) % 500009) - 250007;

export class INA228 {
  // alert(level): drives the ALERT line. fast_ppm: of the chip's oscillator.
  constructor(clock, alert, fast_ppm = 0) {
    this.clock = clock;
    this.alert = alert;
    this.speed = 1 + fast_ppm * 1e-6;
    this.alarm = clock.createAlarm(() => this.convert());
    this.registers = { 0: 0, 1: 0xfb68, 2: 0x1000, 11: 1, 0x3e: 0x5449, 0x3f: 0x2281 };
    this.pointer = 0;
    this.number = -1; // of the last conversion since ADC_CONFIG was written
    this.accumulated = 0;
    this.edges = []; // ns of each falling edge of ALERT, by the emulated clock
    this.unread_ns = []; // ends of conversions before which DIAG_ALRT of the one before was not read
  }

  period_ns() {
    const adc = this.registers[1];
    const mode = adc >> 12;
    let us = 0;
    if (mode & 1) us += CT_us[(adc >> 9) & 7];
    if (mode & 2) us += CT_us[(adc >> 6) & 7];
    if (mode & 4) us += CT_us[(adc >> 3) & 7];
    return mode > 8 ? (us * 1000) / this.speed : 0;
  }

  convert() {
    this.alarm.scheduled = false;
    this.number += 1;
    this.accumulated += 1;
    const flags = this.registers[11];
    this.registers[11] = flags | CNVRF;
    if (flags & CNVR) {
      if (flags & CNVRF) this.unread_ns.push(this.clock.nanos);
      else {
        this.edges.push(this.clock.nanos);
        this.alert(false);
      }
    }
    this.due += this.period_ns();
    this.alarm.schedule(this.due - this.clock.nanos);
  }

  value(register) {
    if (register === 5) return vbusOf(this.number) << 4;
    if (register === 7) return ((currentOf(this.number) & 0xfffff) << 4) & 0xffffff;
    if (register === 9) return 16 * this.accumulated;
    if (register === 10) return this.accumulated;
    if (register === 6) return 3200;
    if (register === 11) {
      const flags = this.registers[11];
      this.registers[11] = flags & ~CNVRF;
      this.alert(true);
      return flags;
    }
    return this.registers[register] ?? 0;
  }

  // The bytes that a read from the pointer on gives.
  bytes() {
    const width = WIDTH[this.pointer] ?? 2;
    let value = this.value(this.pointer);
    const out = [];
    for (let k = 0; k < width; k++) {
      out.unshift(value % 256);
      value = Math.floor(value / 256);
    }
    return out;
  }

  write(register, value) {
    if (register === 0 && value & 0x8000) {
      Object.assign(this.registers, { 0: 0, 1: 0, 2: 0x1000, 11: 1 }); // asleep at once: nobody waits for it to begin
      this.alarm.cancel();
      return;
    }
    if (register === 0 && value & 0x4000) this.accumulated = 0;
    if (register === 0) this.registers[0] = value & 0x3ff0;
    else if (register === 11) this.registers[11] = (value & 0xf000) | (this.registers[11] & 0xfff);
    else this.registers[register] = value;
    if (register !== 1) return;
    this.registers[11] &= ~CNVRF;
    this.alert(true);
    this.number = -1;
    this.alarm.cancel();
    this.due = this.clock.nanos + this.period_ns();
    if (this.period_ns()) this.alarm.schedule(this.period_ns());
  }
}

// chips: address -> INA228. Bytes take the time that the block's own counters make (DW_apb_i2c: LCNT + 1 + HCNT + SPKLEN + 7 cycles a clock).
export function wire(block, clock, cycle_ns, chips) {
  let after = null;
  let chip = null;
  let written = [];
  let reading = [];
  const alarm = clock.createAlarm(() => {
    alarm.scheduled = false;
    const next = after;
    after = null;
    next();
  });
  const bit_ns = () => (block.sclLowPeriod + 1 + block.sclHighPeriod + block.spikelen + 7) * cycle_ns;
  const later = (clocks, what) => {
    after = what;
    alarm.schedule(clocks * bit_ns());
  };
  const commit = () => {
    if (chip && written.length === 3) chip.write(written[0], (written[1] << 8) | written[2]);
    written = [];
  };
  block.onStart = () => {
    commit();
    later(1, () => block.completeStart());
  };
  block.onConnect = (address) => {
    chip = chips[address] ?? null;
    reading = null;
    later(9, () => block.completeConnect(chip !== null));
  };
  block.onWriteByte = (byte) => {
    written.push(byte);
    if (written.length === 1) chip.pointer = byte;
    later(9, () => block.completeWrite(true));
  };
  block.onReadByte = () => {
    reading = reading ?? chip.bytes();
    const byte = reading.length ? reading.shift() : 0xff;
    later(9, () => block.completeRead(byte));
  };
  block.onStop = () => {
    commit();
    later(2, () => block.completeStop());
  };
  return bit_ns;
}
