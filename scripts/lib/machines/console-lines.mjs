import { StringDecoder } from 'node:string_decoder'

/** Longer lines are broken; firmware fills whole screens without a line feed. */
const lineLengthMax = 1000

/**
 * Turns a serial console's bytes into lines of plain text: colours and cursor movements are removed, a line that is
 * rewritten after a carriage return (a progress display) counts in its last form, and a jump of the cursor ends a line.
 */
export class ConsoleLines {
  #decoder = new StringDecoder('utf8')
  #line = ''
  /** The part of an escape sequence that has been read, or '' outside of one. */
  #escape = ''
  #returned = false
  #began = 0
  #emit

  /** @param {(line: string, atMs: number) => void} emit gets each line with the time of its first character */
  constructor(emit) {
    this.#emit = emit
  }

  get hasPartialLine() {
    return this.#line !== ''
  }

  /** @param {Buffer} bytes @param {number} nowMs */
  write(bytes, nowMs) {
    for (const character of this.#decoder.write(bytes)) {
      if (this.#escape) this.#inEscape(character, nowMs)
      else this.#plain(character, nowMs)
    }
  }

  /** Ends a line that has no line feed yet, such as a prompt. */
  flush() {
    if (this.#line.trim() !== '') this.#emit(this.#line.trimEnd(), this.#began)
    this.#line = ''
  }

  #plain(character, nowMs) {
    if (character === '\u001b') this.#escape = character
    else if (character === '\n') this.#lineFeed()
    else if (character === '\r') this.#returned = true
    else if (character === '\b') this.#line = this.#line.slice(0, -1)
    else if (character === '\t') this.#add(' ', nowMs)
    // Excludes C0, DEL and C1 (ECMA-48, 5.2 and 5.3).
    else if (/\P{Cc}/u.test(character)) this.#add(character, nowMs)
  }

  #add(character, nowMs) {
    if (this.#returned) this.#line = ''
    this.#returned = false
    if (this.#line === '') this.#began = nowMs
    this.#line += character
    if (this.#line.length >= lineLengthMax) this.flush()
  }

  #lineFeed() {
    this.#returned = false
    this.flush()
  }

  /** ECMA-48, 5.4: ESC [ parameters final; ESC intermediates final; 5.6: ESC ] … ended by BEL or ESC \. */
  #inEscape(character, nowMs) {
    const begin = this.#escape
    this.#escape = begin + character
    if (begin.startsWith('\u001b]')) {
      if (character === '\u0007' || this.#escape.endsWith('\u001b\\')) this.#escape = ''
    } else if (begin.startsWith('\u001b[')) {
      if (/[@-~]/.test(character)) this.#endSequence(character)
    } else if (!/[ -~]/.test(character)) {
      // systemd truncates lines in the middle of a sequence.
      this.#escape = ''
      this.#plain(character, nowMs)
    } else if (!/[[\] -/]/.test(character)) {
      this.#escape = ''
    }
    if (this.#escape.length > lineLengthMax) this.#escape = ''
  }

  #endSequence(final) {
    this.#escape = ''
    // H and f move the cursor, J clears the screen.
    if ('HfJ'.includes(final)) this.#lineFeed()
  }
}
