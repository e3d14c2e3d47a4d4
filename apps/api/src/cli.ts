import { createDb, requireApiRole } from '@bootfarm/db'
import { readEnvironment } from './env.ts'
import { setListeners } from './events/event-bus.ts'
import { listeners } from './listeners.ts'
import { setPlatformOperator } from './platform/platform-operator.ts'
import { systemClock } from './rules/clock.ts'
import { setSecretKeys } from './secrets/kept-secrets.ts'
import { loadSecretKeys } from './secrets/load-secret-keys.ts'
import { resealSecrets } from './secrets/reseal-secrets.ts'
import { createSetupLink } from './session/setup-link.ts'

const usage = `node apps/api/src/cli.ts COMMAND, with the API's environment
  owner-link                          a new one-time link by which the first owner sets up an installation without accounts; earlier
                                      links end
  platform-operator grant E-MAIL      lets this person see the installation's health and every organization's quotas
  platform-operator revoke E-MAIL     takes that again
  reseal-secrets                      seals all secrets in the database with the newest key, so that older ones can be removed`

async function main(): Promise<void> {
  const [command, verb, email, ...rest] = process.argv.slice(2)
  const isOwnerLink = command === 'owner-link' && verb === undefined
  const isOperator =
    command === 'platform-operator' && (verb === 'grant' || verb === 'revoke') && email && rest.length === 0
  const isReseal = command === 'reseal-secrets' && verb === undefined
  if (!isOwnerLink && !isOperator && !isReseal) throw new Error(usage)
  const environment = readEnvironment()
  setListeners(listeners)
  setSecretKeys(await loadSecretKeys(environment))
  const db = createDb(environment.DATABASE_URL)
  try {
    await requireApiRole(db)
    const context = { db, clock: systemClock }
    if (isReseal) {
      process.stdout.write(`Secrets sealed with the newest key: ${await resealSecrets(context)}\n`)
      return
    }
    const line = isOperator
      ? await setPlatformOperator(context, { email, isOperator: verb === 'grant' })
      : await createSetupLink(context, environment.WEB_URL)
    if (!line)
      throw new Error('Somebody has an account already: ask an owner for an invitation, or ask for a new password.')
    process.stdout.write(`${line}\n`)
  } finally {
    await db.$disconnect()
  }
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
})
