import { spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, statfsSync, truncateSync, writeFileSync, writeSync } from 'node:fs'
import path from 'node:path'
import { RunningProcess } from './running-process.ts'

/** Why no disk that fails can be made here; null if one can. */
export function faultyDisksMissing(): string | null {
  if (process.getuid?.() !== 0) return 'mounting a file system needs root'
  const probe = spawnSync('unshare', ['--mount', 'sh', '-c', 'losetup -f && command -v mkfs.ext4'], { stdio: 'ignore' })
  return probe.status === 0 ? null : 'loop devices and mkfs.ext4 are needed (Debian: mount, e2fsprogs)'
}

/**
 * An ext4 file system in a file, mounted in a mount namespace of its own that ends with the test. It can be filled,
 * made read-only, or lost.
 */
export class FaultyDisk {
  readonly #holder: RunningProcess
  readonly #image: string
  readonly #mountPoint: string

  /** As processes outside of its namespace see it. */
  readonly path: string

  private constructor(holder: RunningProcess, image: string, mountPoint: string) {
    this.#holder = holder
    this.#image = image
    this.#mountPoint = mountPoint
    this.path = `/proc/${holder.pid}/root${mountPoint}`
  }

  static async make(directory: string, sizeMiB: number): Promise<FaultyDisk> {
    const image = path.join(directory, 'image')
    const mountPoint = path.join(directory, 'mounted')
    mkdirSync(mountPoint, { recursive: true })
    writeFileSync(image, '')
    truncateSync(image, sizeMiB << 20)
    // No blocks for root alone: it is to become full.
    const made = spawnSync('mkfs.ext4', ['-q', '-F', '-m', '0', image], { encoding: 'utf8' })
    if (made.status !== 0) throw new Error(made.stderr)
    const script = 'mount -o loop "$0" "$1" && echo mounted && exec cat'
    const holder = new RunningProcess(
      'unshare',
      ['--mount', '--propagation', 'private', 'sh', '-c', script, image, mountPoint],
      {},
      'pipe',
    )
    await holder.waitFor(/mounted/)
    return new FaultyDisk(holder, image, mountPoint)
  }

  /** Takes all of its space. */
  fill(): void {
    const ballast = openSync(path.join(this.path, 'ballast'), 'a')
    try {
      for (const size of [1 << 20, 4096]) this.#fillWith(ballast, Buffer.alloc(size, 1))
    } finally {
      closeSync(ballast)
    }
    const { bavail } = statfsSync(this.path)
    if (bavail > 1) throw new Error(`${bavail} blocks are free`)
  }

  #fillWith(file: number, bytes: Buffer): void {
    try {
      while (writeSync(file, bytes) > 0);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    }
  }

  free(): void {
    rmSync(path.join(this.path, 'ballast'))
  }

  /** Only while no file is open for writing. */
  makeReadOnly(): void {
    this.#mount('remount,ro')
  }

  makeWritable(): void {
    this.#mount('remount,rw')
  }

  /** Nothing can be written from now on, whatever is open; what is in memory can still be read. */
  lose(): void {
    this.#mount('remount,abort')
    truncateSync(this.#image, 0)
  }

  #mount(options: string): void {
    const words = [`--mount=/proc/${this.#holder.pid}/ns/mnt`, 'mount', '-o', options, this.#mountPoint]
    const { status, stderr } = spawnSync('nsenter', words, { encoding: 'utf8' })
    if (status !== 0) throw new Error(stderr)
  }

  async remove(): Promise<void> {
    await this.#holder.stop()
  }
}
