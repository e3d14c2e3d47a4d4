import { createHash } from 'node:crypto'
import type { StateDelta } from './uplink.ts'

/** Desired states as changes of the ones that edges have; see UPLINK.md, "Deltas". */

/** A smaller state is a few packets: its edge gets it whole. */
const deltaFromBytes = 4096
/** Of an edit in JSON, beside the inserted text. */
const editBytes = 48
/** Lies between two objects of a list. A name may contain it, too: there is one piece more then. */
const boundary = Buffer.from('},{')

type Edit = StateDelta['edits'][number]

/** Bytes of a text. */
interface Span {
  from: number
  to: number
}

interface Texts {
  former: Buffer
  next: Buffer
}

/** The same bytes in the former text and in the next one. */
type Match = [Span, Span]

/** Returns the SHA-256 of a payload in hex, by which a poll names the state that its edge has. */
export function stateDigest(payload: string): string {
  return createHash('sha256').update(payload).digest('hex')
}

/** Returns the edits that make `next` of `base`; null if the whole is hardly larger. */
export function makeStateEdits(base: string, next: string): Edit[] | null {
  const target = Buffer.from(next)
  if (target.length < deltaFromBytes) return null
  const edits = editsBetween(Buffer.from(base), target)
  const size = edits.reduce((sum, { insert }) => sum + Buffer.byteLength(insert) + editBytes, 0)
  return size > target.length / 2 ? null : edits
}

function editsBetween(former: Buffer, next: Buffer): Edit[] {
  const texts = { former, next }
  const edits: Edit[] = []
  let [formerEnd, nextEnd] = [0, 0]
  const closeGap = (formerTo: number, nextTo: number) => {
    const edit = editBetween(texts, { from: formerEnd, to: formerTo }, { from: nextEnd, to: nextTo })
    if (edit) edits.push(edit)
  }
  for (const [left, right] of matchesBetween(texts, piecesOf(former), piecesOf(next))) {
    closeGap(left.from, right.from)
    formerEnd = left.to
    nextEnd = right.to
  }
  closeGap(former.length, next.length)
  return edits
}

/** Returns the text in pieces, each but the first beginning with an object of a list. */
function piecesOf(text: Buffer): Span[] {
  const pieces: Span[] = []
  let from = 0
  for (let at = text.indexOf(boundary); at >= 0; at = text.indexOf(boundary, from)) {
    pieces.push({ from, to: at + 2 })
    from = at + 2
  }
  pieces.push({ from, to: text.length })
  return pieces
}

/**
 * Returns what is the same in both texts, in order. The first and the last piece have what is never the same. Behind
 * and before them nearly all of a state is found by comparing piece by piece; only what lies between is searched.
 */
function matchesBetween(texts: Texts, former: Span[], next: Span[]): Match[] {
  const last = Math.min(former.length, next.length) - 1
  let front = 1
  while (front < last && isSame(texts, former[front], next[front])) front += 1
  let back = 1
  while (front + back <= last && isSame(texts, former.at(-1 - back), next.at(-1 - back))) back += 1
  return [
    ...runOf(former.slice(1, front), next.slice(1, front)),
    ...search(texts, former.slice(front, -back), next.slice(front, -back)),
    ...runOf(former.slice(-back, -1), next.slice(-back, -1)),
  ]
}

function isSame({ former, next }: Texts, left: Span | undefined, right: Span | undefined): boolean {
  if (!left || !right || left.to - left.from !== right.to - right.from) return false
  return former.compare(next, right.from, right.to, left.from, left.to) === 0
}

/** Returns one match of pieces that are the same one by one; none of none. */
function runOf(former: Span[], next: Span[]): Match[] {
  const [left, right, leftEnd, rightEnd] = [former[0], next[0], former.at(-1), next.at(-1)]
  if (!left || !right || !leftEnd || !rightEnd) return []
  return [
    [
      { from: left.from, to: leftEnd.to },
      { from: right.from, to: rightEnd.to },
    ],
  ]
}

/** The pieces that both texts have are in the same order, as a rule: one pass finds them. */
function search({ former, next }: Texts, formerPieces: Span[], nextPieces: Span[]): Match[] {
  const indexOf = finder(former, formerPieces)
  let index = 0
  return nextPieces.flatMap((piece): Match[] => {
    const found = indexOf(next.toString('latin1', piece.from, piece.to), index)
    const same = formerPieces[found]
    if (!same) return []
    index = found + 1
    return [[same, piece]]
  })
}

/** Returns a function that finds the first such piece from an index on, which only grows; -1: there is none. */
function finder(text: Buffer, pieces: Span[]): (wanted: string, from: number) => number {
  const first = new Map<string, number>()
  const following = new Int32Array(pieces.length).fill(-1)
  for (const [index, { from, to }] of [...pieces.entries()].toReversed()) {
    const piece = text.toString('latin1', from, to)
    following[index] = first.get(piece) ?? -1
    first.set(piece, index)
  }
  return (wanted, from) => {
    let index = first.get(wanted) ?? -1
    while (index >= 0 && index < from) index = following[index] ?? -1
    first.set(wanted, index)
    return index
  }
}

/** Returns the edit between two pieces that are the same in both texts, as short as possible; null without one. */
function editBetween({ former, next }: Texts, left: Span, right: Span): Edit | null {
  let { from: at, to } = left
  let { from: start, to: end } = right
  while (at < to && start < end && former[at] === next[start]) {
    at += 1
    start += 1
  }
  while (at < to && start < end && former[to - 1] === next[end - 1]) {
    to -= 1
    end -= 1
  }
  // What is inserted is a text: it begins and ends between two characters.
  while (isInside(next[start]) && start > right.from) {
    at -= 1
    start -= 1
  }
  while (isInside(next[end]) && end < right.to) {
    to += 1
    end += 1
  }
  if (at === to && start === end) return null
  return { at, remove: to - at, insert: next.toString('utf8', start, end) }
}

/** The byte continues a character of UTF-8. */
function isInside(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}
