/** Files with the headers of real kernels and initramfs, but nothing in them that runs. */

const x86BootSector = { setupSectors: 0x1f1, systemSize: 0x1f4, magic: 0x202, version: 0x206, release: 0x20e }
const x86LoadFlags = 0x236
const x86SetupSize = 1024

/** Makes a kernel for 64-bit x86 (Linux's Documentation/arch/x86/boot.rst), with `system` after its set-up code. */
export function x86Kernel(release: string, system: Uint8Array): Buffer {
  const paragraphs = Math.ceil(system.length / 16)
  const kernel = Buffer.alloc(x86SetupSize + paragraphs * 16)
  kernel.writeUInt8(x86SetupSize / 512 - 1, x86BootSector.setupSectors)
  kernel.writeUInt32LE(paragraphs, x86BootSector.systemSize)
  kernel.write('HdrS', x86BootSector.magic)
  kernel.writeUInt16LE(0x020f, x86BootSector.version)
  kernel.writeUInt16LE(0x100, x86BootSector.release)
  kernel.writeUInt16LE(1, x86LoadFlags)
  kernel.write(`${release} (for simulated devices) #1 SMP\0`, 0x300)
  kernel.set(system, x86SetupSize)
  return kernel
}

/** Makes a kernel for 64-bit ARM (Linux's Documentation/arch/arm64/booting.rst). */
export function arm64Kernel(system: Uint8Array): Buffer {
  const header = Buffer.alloc(64)
  header.write('ARM\x64', 56)
  return Buffer.concat([header, system])
}

/**
 * Makes an initramfs with the header that `bootfarm-edge initramfs build` writes, and `rest` in place of the compressed
 * part.
 */
export function markedInitramfs(release: string, architecture: string, rest: Uint8Array): Buffer {
  const content = `bootfarm-initramfs 1\nrelease ${release}\narchitecture ${architecture}\n`
  return Buffer.concat([cpioEntry('bootfarm-initramfs', 0o100644, content), cpioEntry('TRAILER!!!', 0, ''), rest])
}

/**
 * Makes the start of an ext4 file system of `blocks` blocks of 4096 bytes (Linux's
 * Documentation/filesystems/ext4/super.rst).
 */
export function ext4Begin(blocks: number): Buffer {
  const begin = Buffer.alloc(4096)
  begin.writeUInt32LE(blocks, 1024 + 4)
  begin.writeUInt32LE(2, 1024 + 24)
  begin.writeUInt16LE(0xef53, 1024 + 56)
  return begin
}

function cpioEntry(name: string, mode: number, content: string): Buffer {
  const fields = [1, mode, 1, 0, 0, 0, content.length, 0, 0, 0, 0, name.length + 1, 0]
  const header = `070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}`
  return Buffer.concat([padded(`${header}${name}\0`), padded(content)])
}

function padded(text: string): Buffer {
  const bytes = Buffer.alloc(Math.ceil(text.length / 4) * 4)
  bytes.write(text)
  return bytes
}
