import { openDb, openJobQueue } from '@bootfarm/db'
import { mailAlerts } from '../../src/alert/mail-alerts.ts'
import { queueMailsWithin } from '../../src/mail/queued-mailer.ts'
import { testOrigin, testSecret } from '../test-constants.ts'

/**
 * A process that mails the alerts of an organization, and is killed on the way. Arguments: address of the database,
 * organization, time of day as ISO 8601, and `before` or `after` the commit.
 */
const [url = '', organizationId = '', now = '', moment] = process.argv.slice(2)
const end = () => process.kill(process.pid, 'SIGKILL')
const queue = await openJobQueue(url, { onDone: () => undefined, onError: (error) => console.error(error) })
const keepMail = queueMailsWithin({
  secret: testSecret,
  keep: async (sealed, transaction) => {
    await queue.sendMail(sealed, transaction)
    if (moment === 'before') end()
  },
})
await mailAlerts({ db: openDb(url).db, clock: () => new Date(now), keepMail, webUrl: testOrigin }, organizationId)
end()
