// What lies on the ADC's input 2 (GPIO 28): a constant, and bursts above it whose length and height are known. rp2040js's own ADC stays
// as it is, with its FIFO and its requests to the DMA; its round robin over several inputs is wrong (it masks the channel with a shift).

const SAMPLE_ns = 2000; // of a conversion: what is there at its end is what it gives

export const REST = 50; // counts
// [first of them after so many ns, one each so many ns, length in ns, counts]
export const BURSTS = [
  [3_000_000, 40_000_000, 100_000, 1500],
  [23_000_000, 200_000_000, 60_000, 2600], // 60 % of a window
  [523_000_000, 400_000_000, 300_000, 3900], // above the amplifier's limit
];

export function counts(t_ns) {
  for (let k = BURSTS.length - 1; k >= 0; k--) {
    const [first, every, length, height] = BURSTS[k];
    if (t_ns >= first && (t_ns - first) % every < length) return height;
  }
  return REST;
}

export function wireAdc(adc, clock) {
  adc.onADCRead = (channel) => {
    adc.currentChannel = channel;
    adc.channelValues[channel] = channel === 2 ? counts(clock.nanos + SAMPLE_ns) : 0;
    adc.sampleAlarm.schedule(SAMPLE_ns);
  };
}
