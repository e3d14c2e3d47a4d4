/** What the disk prints on the serial port once a BIOS has started it. */
export const ownDiskSays = 'STARTED FROM THE OWN DISK'

/**
 * Writes each byte of the text after it to the serial port, then restarts the machine (16-bit code, loaded at 0x7c00).
 */
const startCode = [
  [0xfa], // cli
  [0x31, 0xc0], // xor ax, ax
  [0x8e, 0xd8], // mov ds, ax
  [0xbe, 0x1a, 0x7c], // mov si, text
  [0xba, 0xf8, 0x03], // mov dx, COM1
  [0xac], // next: lodsb
  [0x84, 0xc0], // test al, al
  [0x74, 0x03], // jz end
  [0xee], // out dx, al
  [0xeb, 0xf8], // jmp next
  [0xb0, 0xfe], // end: mov al, reset
  [0xe6, 0x64], // out keyboard controller, al
  [0xf4], // hlt
  [0xeb, 0xfd], // jmp hlt
].flat()

/** Makes a disk of one MiB whose first sector a BIOS starts. */
export function ownDisk(): Buffer {
  const disk = Buffer.alloc(1 << 20)
  disk.set([...startCode, ...Buffer.from(`\r\n${ownDiskSays}\r\n\0`)])
  disk.writeUInt16LE(0xaa55, 510)
  return disk
}
