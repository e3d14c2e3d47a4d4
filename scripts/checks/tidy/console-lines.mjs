// Checks that the console lines in docs/guides/real-machines.md are printed by the programs.

const document = 'docs/guides/real-machines.md'
const heading = '## When it does not boot'
const sources =
  /^edge\/streamer-zig\/src\/(initramfs\/init\.sh|(target|core|wire|store|agent|host)\/(?!.*_test\.zig).+\.zig)$/

/** @type {import('../tidy.mjs').Rule} */
export const consoleLines = {
  name: 'console-lines',
  instead: 'take its line from the source',
  find(all) {
    const texts = all.files(sources).map((file) => joined(all.text(file)))
    return documentedLines(all.text(document))
      .filter((line) => !texts.some((text) => hasParts(text, line)))
      .map((line) => ({ file: document, what: `no program prints "${line}"` }))
  },
}

/** The lines in back-ticks in the first column of the table. */
function documentedLines(text) {
  const [, table = ''] = text.slice(text.indexOf(heading)).match(/^## .*\n([\s\S]*?)(?=\n## |$)/) ?? []
  const cells = [...table.matchAll(/^\| (`[^|]*`) *\|/gm)].map((match) => match[1])
  const lines = cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1]))
  return lines.length > 0 ? lines : [`a table below ${heading}`]
}

/** Joins strings that a program writes in two parts. */
const joined = (text) => text.replaceAll(/"\s*\+\+\s*"/g, '')

/** Returns whether everything between the dots is in the text. */
const hasParts = (text, line) =>
  line
    .split('...')
    .map((part) => part.trim())
    .filter((part) => part.length > 1)
    .every((part) => text.includes(part))
