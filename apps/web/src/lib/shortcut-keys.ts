/** What a key press asks for. */
export type Shortcut = { kind: 'palette' } | { kind: 'help' } | { kind: 'go'; key: string }

/** The part of a keyboard event that decides. */
interface Press {
  key: string
  ctrlKey: boolean
  metaKey: boolean
  altKey: boolean
  /** It goes into a field, or to a menu or dialog. */
  isTyping: boolean
  atMs: number
}

/** After `g` the next key has to come within this time. */
const sequenceMs = 1_500

/** Reads the shortcuts out of key presses: Ctrl-K or ⌘K anywhere; `/`, `?` and `g` with a letter outside of fields. */
export class ShortcutKeys {
  #startedAtMs: number | null = null

  /** @param withSingleKeys whether keys without Ctrl or ⌘ are shortcuts */
  press(press: Press, withSingleKeys: boolean): Shortcut | null {
    const { key, ctrlKey, metaKey, altKey, isTyping, atMs } = press
    const startedAtMs = this.#startedAtMs
    this.#startedAtMs = null
    if ((ctrlKey || metaKey) && !altKey && key.toLowerCase() === 'k') return { kind: 'palette' }
    if (!withSingleKeys || isTyping || ctrlKey || metaKey || altKey) return null
    if (startedAtMs !== null && atMs - startedAtMs <= sequenceMs) return { kind: 'go', key: key.toLowerCase() }
    if (key === 'g') this.#startedAtMs = atMs
    if (key === '/') return { kind: 'palette' }
    return key === '?' ? { kind: 'help' } : null
  }
}
