import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { edgeProgram } from '../lib/paths.mjs'
import { step } from '../lib/progress.mjs'
import { capture, must } from '../lib/run.mjs'

/** Returns whether the edge of this data directory has an identity. */
export const isEnrolled = (directory) => existsSync(path.join(directory, 'identity.json'))

/** Enrols the edge of one more site unless it is enrolled. */
export async function enrolEdge({ directory, apiPort, title }, joinToken) {
  if (isEnrolled(directory)) return
  await step(`Enrolling the edge of ${title}`, () =>
    must(`Enrolling the edge of ${title}`, edgeProgram, [
      'enrol',
      '--url',
      `http://127.0.0.1:${apiPort}`,
      '--token',
      joinToken,
      '--data',
      directory,
    ]),
  )
}

/** Makes the store of an enrolled edge, into which images are imported, unless there is one. */
export async function ensureStore(program, directory) {
  const store = path.join(directory, 'store')
  if (existsSync(path.join(store, 'bootfarm-store'))) return
  const { organizationId } = JSON.parse(readFileSync(path.join(directory, 'identity.json'), 'utf8'))
  const args = ['vdisk', 'init', '--beside-files', '--store', store, '--organization', organizationId]
  await must('Making a store for images', program, args)
}

/** Returns whether something listens at the port, inside a namespace. */
export async function listens({ command, args }) {
  const { code, output } = await capture(command, args)
  return code === 0 && output.trim() !== ''
}
