import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type HelpDoc, helpFolders, parseHelp } from './help-doc'

/**
 * The documentation, beside the program: `next build` copies it (scripts/copy-static-files.mjs), and a development
 * server reads the repository's.
 */
const docsDirectory = join(process.cwd(), '../../docs')

let docs: Map<string, HelpDoc> | undefined

/** By path, in the order of their titles. Read once: it does not change while a program runs. */
export function readHelp(directory = docsDirectory): Map<string, HelpDoc> {
  docs ??= new Map(
    helpFolders
      .flatMap((folder) =>
        readdirSync(join(directory, folder))
          .filter((name) => name.endsWith('.md'))
          .map((name) =>
            parseHelp(`${folder}/${name.slice(0, -3)}`, readFileSync(join(directory, folder, name), 'utf8')),
          ),
      )
      .sort((a, b) => a.title.localeCompare(b.title, 'en'))
      .map((doc) => [doc.path, doc]),
  )
  return docs
}
