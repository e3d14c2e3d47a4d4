"""Writes vectors/difference-v1-*.bin from DIFFERENCE.md alone, without the edge's code.

    python3 packages/proto/test/difference_vectors.py packages/proto/vectors
"""

import hashlib
import struct
import sys
import zlib
from pathlib import Path

BLOCK = 4096
FANOUT = 102
DISK = 3 * BLOCK + 512


def sha(data):
    return hashlib.sha256(data).digest()


def uuid(number):
    made = bytearray([number] * 16)
    made[6] = made[6] & 0x0F | 0x40
    made[8] = made[8] & 0x3F | 0x80
    return bytes(made)


def root(disk):
    padded = disk + bytes(-len(disk) % BLOCK)
    blocks = [padded[at : at + BLOCK] for at in range(0, len(padded), BLOCK)]
    hashes = b"".join(sha(block) if any(block) else bytes(32) for block in blocks)
    hashes += bytes(32 * FANOUT - len(hashes))
    return sha(b"bootfarm tree node 1" + bytes([0]) + hashes) if any(hashes) else bytes(32)


def boot_file(data):
    return sha(data) + struct.pack(">Q", len(data)) if data else bytes(40)


def text(value):
    return struct.pack(">H", len(value)) + value


def header(version, parent, base, number, disk, before, kernel):
    made = b"BFDELTA1" + struct.pack(">I", 1)
    made += uuid(1) + uuid(2) + version + parent + base
    made += struct.pack(">IQQQQ", number, 0, 40 + number, 1_700_000_000_000 + number, DISK)
    made += root(disk) + (root(before) if before else bytes(32))
    made += boot_file(kernel) + bytes(40)
    made += text(b"quiet splash") + text("Büro".encode()) + text(b"the golden one")
    made += bytes(4064 - len(made))
    return made + sha(made)


def frame(kind, raw, runs, first, end, is_deflated):
    stored = raw
    if is_deflated:
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        stored = packer.compress(raw) + packer.flush()
    head = struct.pack(">BBHIIIQQ", kind, is_deflated, 0, len(raw), len(stored), runs, first, end)
    return head + sha(head + stored) + stored


def run(first, count, is_zeros=False):
    return struct.pack(">QI", first, count | is_zeros << 31)


def main(folder):
    kernel = b"a kernel of 26 bytes\n\x00\x01\x02\x03\x04"
    tail = bytes(BLOCK - 512)
    whole = b"a" * BLOCK + bytes(BLOCK) + b"c" * BLOCK + b"d" * 512
    update = bytes(BLOCK) + b"B" * BLOCK + b"c" * BLOCK + b"D" * 512
    first = header(uuid(3), bytes(16), bytes(16), 1, whole, None, kernel)
    first += frame(1, kernel, 0, 0, len(kernel), False)
    first += frame(3, run(0, 1) + run(2, 2) + whole[:BLOCK] + whole[2 * BLOCK :] + tail, 2, 0, 4, True)
    first += frame(4, b"", 0, 3, 0, False)
    second = header(uuid(4), uuid(3), uuid(3), 2, update, whole, kernel)
    second += frame(3, run(0, 1, True) + run(1, 1) + b"B" * BLOCK, 2, 0, 2, True)
    second += frame(3, run(3, 1) + update[3 * BLOCK :] + tail, 1, 3, 4, False)
    second += frame(4, b"", 0, 2, 0, False)
    Path(folder, "difference-v1-whole.bin").write_bytes(first)
    Path(folder, "difference-v1-update.bin").write_bytes(second)


main(sys.argv[1])
