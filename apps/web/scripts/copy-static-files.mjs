import { cpSync } from 'node:fs'
import { join } from 'node:path'

/** The standalone server serves hashed files only from beside itself; `next build` leaves them elsewhere. */
const web = join(import.meta.dirname, '..')
cpSync(join(web, '.next/static'), join(web, '.next/standalone/apps/web/.next/static'), { recursive: true })
