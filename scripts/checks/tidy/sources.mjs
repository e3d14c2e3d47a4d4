import { readFileSync } from 'node:fs'
import { inRoot } from '../../lib/paths.mjs'
import { trackedFiles } from '../tracked-files.mjs'

/** The files of the tree, each read once. */
export class Sources {
  #files = trackedFiles(/./)
  #texts = new Map()
  #lines = new Map()

  /** @param {RegExp} pattern @returns {string[]} paths from the project's root */
  files(pattern) {
    return this.#files.filter((file) => pattern.test(file))
  }

  text(file) {
    if (!this.#texts.has(file)) this.#texts.set(file, readFileSync(inRoot(file), 'utf8'))
    return this.#texts.get(file)
  }

  lines(file) {
    if (!this.#lines.has(file)) this.#lines.set(file, this.text(file).split('\n'))
    return this.#lines.get(file)
  }
}

export const zigSources = /^edge\/.*\.zig$/
export const scriptSources = /\.(ts|tsx|mjs|mts)$/
export const isTest = (file) => /(_test\.zig|\.(test|spec)\.tsx?)$/.test(file)
