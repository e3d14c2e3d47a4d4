import { type DbTransaction, inOrganization } from '@bootfarm/db'
import { visibleAlerts } from '../access/visible.ts'
import type { DbOrTransaction, PlatformContext } from '../context/service-context.ts'
import { isOpen as isWithin } from '../placement/public.ts'
import { newMemberActor } from '../rules/actor.ts'
import { alertsMail, type Mail } from '../rules/mail.ts'
import { readGrants } from '../session/public.ts'
import { alertSelect, alertViewOf } from './rows.ts'

/** Sends a mail if the transaction is committed, and only then. */
export type KeepMail = (mail: Mail, transaction: DbTransaction) => Promise<void>

export interface AlertMailContext {
  keepMail: KeepMail
  /** The address of the dashboard: links in mails begin with it. */
  webUrl: string
}

/** Members of one organization who are mailed in one round; the others are in the next one. */
const membersMax = 500
/** Alerts that a mail lists; it counts the others. */
const listedMax = 20
const countedMax = 400

/**
 * Mails the alerts that have opened or closed since the last mail, to each member who subscribed: those that the member
 * sees, and none in quiet hours: what is held then is one mail after them. The note until when a member was mailed and
 * the mail are one transaction: whenever the process ends, none is lost or sent twice.
 */
export async function mailAlerts(
  { db, clock, keepMail, webUrl }: PlatformContext & AlertMailContext,
  organizationId: string,
): Promise<void> {
  await inOrganization(db, organizationId, (tenant) =>
    mailMembers(tenant, { organizationId, now: clock(), keepMail, webUrl }),
  )
}

interface Round extends AlertMailContext {
  organizationId: string
  now: Date
}

async function mailMembers(db: DbTransaction, round: Round): Promise<void> {
  const { organizationId, now, keepMail } = round
  const [last] = await db.$queryRaw<{ at: Date | null }[]>`
    select greatest(max(opened_at), max(closed_at)) as at from alert where organization_id = ${organizationId}::uuid`
  const until = last?.at
  if (!until) return
  const due = await db.alertSubscription.findMany({
    where: { organizationId, mailedUntil: { lt: until } },
    orderBy: [{ mailedUntil: 'asc' }, { userId: 'asc' }],
    take: membersMax,
    select: {
      userId: true,
      quietFrom: true,
      quietTo: true,
      timeZone: true,
      mailedUntil: true,
      membership: {
        select: { user: { select: { email: true, name: true } }, organization: { select: { name: true } } },
      },
    },
  })
  for (const member of due) {
    const { quietFrom: from, quietTo: to, timeZone, userId, mailedUntil } = member
    if (from !== null && to !== null && isWithin({ from, to }, timeZone, now)) continue
    // Another API process may have been first.
    const taken = await db.alertSubscription.updateMany({
      where: { organizationId, userId, mailedUntil },
      data: { mailedUntil: until },
    })
    const mail = taken.count === 1 ? await mailFor(db, round, { ...member, until }) : null
    if (mail) await keepMail(mail, db)
  }
}

interface Addressee {
  userId: string
  timeZone: string
  mailedUntil: Date
  until: Date
  membership: { user: { email: string; name: string }; organization: { name: string } }
}

/** Null if the member sees none of the alerts. */
async function mailFor(db: DbOrTransaction, { organizationId, webUrl }: Round, to: Addressee): Promise<Mail | null> {
  const { userId, timeZone, mailedUntil, until, membership } = to
  const { user, organization } = membership
  const grants = await readGrants(db, { organizationId, userId })
  const member = newMemberActor({ userId, ...user }, { id: organizationId, name: organization.name })
  const since = { gt: mailedUntil, lte: until }
  const rows = await db.alert.findMany({
    where: {
      organizationId,
      AND: [visibleAlerts({ ...member, grants }), { OR: [{ openedAt: since }, { closedAt: since }] }],
    },
    orderBy: [{ openedAt: 'desc' }, { id: 'desc' }],
    take: countedMax,
    select: alertSelect,
  })
  if (rows.length === 0) return null
  const alerts = rows.slice(0, listedMax).map((row) => {
    const { title, closedAt, boots } = alertViewOf(row)
    return {
      title,
      openedAt: timeText(row.openedAt, timeZone),
      closedAt: row.closedAt && closedAt ? timeText(row.closedAt, timeZone) : null,
      url: new URL(boots, webUrl).toString(),
    }
  })
  return alertsMail({
    email: user.email,
    organizationName: organization.name,
    alerts,
    others: rows.length - alerts.length,
    url: new URL('/alerts', webUrl).toString(),
  })
}

function timeText(at: Date, timeZone: string): string {
  const format = new Intl.DateTimeFormat('en-GB', { timeZone, dateStyle: 'medium', timeStyle: 'short' })
  return `${format.format(at)} (${timeZone})`
}
