/** What the failed boot of a capturing machine says; target/capture in the edge writes it. It is untrusted. */

const sizeBytesMax = 64 * 1024 ** 4

const tooOldText =
  'The device looked for a system on the empty disk: the initramfs is of a release that cannot capture. Choose a version that was imported with a later one.'

export type CaptureProblem =
  /** The empty disk has another size than the machine's. */
  | { kind: 'size'; sizeBytes: number }
  /** One of these has to be named. */
  | { kind: 'several'; disks: string[] }
  /** The next boot would end like this one. */
  | { kind: 'final'; reason: string }
  /** The next boot may go well. */
  | { kind: 'passing' }

export function captureProblemOf(cause: string | null, text: string | null): CaptureProblem {
  if (cause === 'root_not_found') return { kind: 'final', reason: tooOldText }
  if (text === null) return { kind: 'passing' }
  const size = /^no_capture: \S{1,31} has (\d{1,15}) bytes, the version \d{1,15}$/.exec(text)
  if (size) {
    const sizeBytes = Number(size[1])
    if (sizeBytes > 0 && sizeBytes % 512 === 0 && sizeBytes <= sizeBytesMax) return { kind: 'size', sizeBytes }
  }
  const several = /^no_capture: name one of \d{1,3} disks:((?: [A-Za-z0-9][A-Za-z0-9!_-]{0,30})+)$/.exec(text)
  if (several?.[1]) return { kind: 'several', disks: several[1].trim().split(' ') }
  if (text.startsWith('no_capture: '))
    return { kind: 'final', reason: `The device could not capture its disk: ${text.slice('no_capture: '.length)}.` }
  return { kind: 'passing' }
}
