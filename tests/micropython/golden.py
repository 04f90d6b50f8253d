"""Runs under MicroPython: decodes the frames given as hex lines on standard input, with wire.py and with the viper
code of link.py, and answers each with a line `kind seq body-hex same-bytes` or `bad`.

    micropython golden.py FIRMWARE STAND_INS
"""

import usys

usys.path[:] = [usys.argv[1], usys.argv[2], ".frozen"]

import binascii

import link
import wire

for text in usys.stdin:
    frame = binascii.unhexlify(text.strip())
    try:
        kind, seq, body = wire.decode(frame)
    except wire.WireError:
        kind = None
    buf = bytearray(frame) + bytearray(8)
    n = link.unstuff(buf, len(frame))
    sound = n >= 9 and link.crc_fits(buf, n - 4) == 1
    if sound != (kind is not None) or (sound and bytes(buf[5 : n - 4]) != body):
        print("wire.py and link.py differ")
        continue
    if kind is None:
        print("bad")
        continue
    ring = bytearray(8192)
    source = bytearray(5 + len(body) + 4)
    source[0] = kind
    source[5 : 5 + len(body)] = body
    link.put32(source, 1, seq)
    link.put_crc(source, 5 + len(body))
    head = 8100  # across the ring's end
    n = link.stuff(source, len(source), ring, head)
    stuffed = bytes(ring[(head + k) & 8191] for k in range(n))
    same = stuffed == frame + b"\x00" and wire.encode(kind, seq, body) == stuffed
    print(chr(kind), seq, binascii.hexlify(body).decode(), same)
