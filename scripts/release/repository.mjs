// `node scripts/release/repository.mjs root|add ...`: makes the repository from which running edges update themselves.
import path from 'node:path'
import { runMain, UserError } from '../lib/fail.mjs'
import { addReleases, defaultDays, makeRoot, roles } from './metadata.mjs'

const usage = `node scripts/release/repository.mjs root --repository DIR --root KEY... --targets KEY --snapshot KEY
  --timestamp KEY [--threshold N] [--former-root KEY...] [--ROLE-days N]
node scripts/release/repository.mjs add --repository DIR --targets KEY --snapshot KEY --timestamp KEY [--ROLE-days N]
  [PROGRAM...]
Options may be repeated. Keys are PEM files; the first command makes those that do not exist.`

await runMain(async () => {
  const [command, ...words] = process.argv.slice(2)
  const given = { programs: [] }
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    const value = word.startsWith('--') ? words.shift() : word
    if (value === undefined) throw new UserError(`${word} needs a value.\n${usage}`)
    const name = word.startsWith('--') ? word.slice(2) : 'programs'
    given[name] = [...(given[name] ?? []), value]
  }
  const known = ['programs', 'repository', 'threshold', 'former-root', ...roles, ...roles.map((role) => `${role}-days`)]
  const unknown = Object.keys(given).find((name) => !known.includes(name))
  if (unknown || !['root', 'add'].includes(command))
    throw new UserError(`${unknown ? `--${unknown}` : command} is not understood.\n${usage}`)
  const signing = command === 'root' ? roles : roles.slice(1)
  const lacking = ['repository', ...signing].find((name) => !given[name])
  if (lacking) throw new UserError(`--${lacking} is missing.\n${usage}`)
  const number = (name, fallback) => {
    const value = Number(given[name]?.at(-1) ?? fallback)
    if (!Number.isInteger(value) || value < 1) throw new UserError(`--${name} must be a number from 1.`)
    return value
  }
  const days = Object.fromEntries(roles.map((role) => [role, number(`${role}-days`, defaultDays[role])]))
  const files = (name) => (given[name] ?? []).map((file) => path.resolve(file))
  const keys = Object.fromEntries(roles.map((role) => [role, files(role)]))
  const options = { repository: path.resolve(given.repository.at(-1)), keys, days, now: new Date() }
  if (command === 'root') {
    const version = makeRoot({ ...options, formerRoot: files('former-root'), threshold: number('threshold', 1) })
    process.stdout.write(`made root ${version}\n`)
    return
  }
  const added = addReleases({ ...options, programs: given.programs })
  for (const { version, arch } of added) process.stdout.write(`added bootfarm-edge ${version} for ${arch}\n`)
  process.stdout.write('signed targets, snapshot and timestamp\n')
})
