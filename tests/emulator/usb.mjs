// The USB host beside rp2040js: it opens the board's serial port and moves packets at a full-speed bus's pace. rp2040js's own host
// takes an IN buffer the moment it is offered and answers an empty OUT queue with empty packets; a real one does neither.

const PACKET_ns = 64_000; // a bulk packet of 64 bytes with its overhead and the host's gaps: 1 MB/s
const AVAILABLE = 1 << 10;
const FULL = 1 << 15;
const LENGTH = 0x3ff;
const DOUBLE = 1 << 30;
const IN_CONTROL = 0x80; // of endpoint 0 in the DPRAM: buffer control, IN then OUT

export class Host {
  // onData(bytes): what the board sends. `reads` false: it takes nothing, as a program that is stopped.
  constructor(mcu, USBCDC, onData) {
    this.mcu = mcu;
    this.usb = mcu.usbCtrl;
    this.onData = onData;
    this.cdc = new USBCDC(this.usb);
    this.reads = true;
    this.out = []; // bytes for the board
    this.wanted = 0; // size of the OUT buffer that waits
    this.offered = []; // IN: [offset in the DPRAM, length, half of the buffer control]
    this.alarm = mcu.clock.createAlarm(() => this.deliver());
    this.usb.onEndpointRead = (endpoint, size) => {
      if (endpoint === this.cdc.outEndpoint) {
        this.wanted = size;
        this.feed();
      }
    };
    const updated = this.usb.DPRAMUpdated.bind(this.usb);
    this.usb.DPRAMUpdated = (offset, value) => {
      const endpoint = (offset - IN_CONTROL) >> 3;
      const mine = endpoint > 0 && endpoint < 16 && !(offset & 4) && this.cdc.inEndpoint === endpoint;
      if (mine) this.offer(endpoint, value >>> 0);
      else updated(offset, value);
    };
  }

  send(bytes) {
    for (const byte of bytes) this.out.push(byte);
    this.feed();
  }

  feed() {
    if (!this.wanted || !this.out.length) return;
    const packet = Uint8Array.from(this.out.splice(0, Math.min(64, this.wanted)));
    this.wanted = 0;
    this.usb.endpointReadDone(this.cdc.outEndpoint, packet, PACKET_ns / 1000);
  }

  offer(endpoint, value) {
    const control = this.usb.readEndpointControlReg(endpoint, false);
    const base = this.usb.getEndpointBufferOffset(endpoint, false);
    if (value & AVAILABLE) this.offered.push([base, value & LENGTH, 0]);
    if (control & DOUBLE && (value >>> 16) & AVAILABLE) this.offered.push([base + 64, (value >>> 16) & LENGTH, 16]);
    if (this.offered.length && !this.alarm.scheduled) this.alarm.schedule(PACKET_ns);
  }

  read(on) {
    this.reads = on;
    if (on && this.offered.length && !this.alarm.scheduled) this.alarm.schedule(PACKET_ns);
  }

  deliver() {
    this.alarm.scheduled = false;
    if (!this.reads || !this.offered.length) return;
    const [offset, length, half] = this.offered.shift();
    const endpoint = this.cdc.inEndpoint;
    const register = IN_CONTROL + 8 * endpoint;
    const value = this.mcu.usbDPRAMView.getUint32(register, true);
    this.mcu.usbDPRAMView.setUint32(register, value & ~((AVAILABLE | FULL) << half), true);
    if (length) this.onData(this.mcu.usbDPRAM.slice(offset, offset + length));
    if (this.offered.length) this.alarm.schedule(PACKET_ns);
    else this.usb.indicateBufferReady(endpoint, false);
  }
}
