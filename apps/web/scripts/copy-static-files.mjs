import { cpSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

const web = join(import.meta.dirname, '..')
const standalone = join(web, '.next/standalone')

/** The standalone server serves hashed files only from beside itself; `next build` leaves them elsewhere. */
cpSync(join(web, '.next/static'), join(standalone, 'apps/web/.next/static'), { recursive: true })

/** The pages below /help are made of these. */
for (const folder of ['guides', 'reference']) {
  const [from, to] = [join(web, '../../docs', folder), join(standalone, 'docs', folder)]
  mkdirSync(to, { recursive: true })
  for (const name of readdirSync(from).filter((name) => name.endsWith('.md'))) cpSync(join(from, name), join(to, name))
}
