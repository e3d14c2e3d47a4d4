/** A mail to one person: plain text only. */
export interface Mail {
  to: string
  subject: string
  text: string
}

/** Says whether a mail server has taken it. */
export type SendMail = (mail: Mail) => Promise<boolean>

/** Names that people choose, on one line: a line end in a subject would start another header. */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ').trim()
}

function mail(to: string, subject: string, lines: string[]): Mail {
  return { to, subject: oneLine(subject), text: `${lines.join('\n')}\n` }
}

interface InvitationFacts {
  email: string
  organizationName: string
  invitedByName: string
  /** E.g. `operator of the site Berlin`. */
  role: string
  url: string
  daysValid: number
}

export function invitationMail(facts: InvitationFacts): Mail {
  const organization = oneLine(facts.organizationName)
  return mail(facts.email, `Invitation to ${organization} on Bootfarm`, [
    `${oneLine(facts.invitedByName)} has invited you to join ${organization} on Bootfarm with the role ${oneLine(facts.role)}.`,
    '',
    `To accept, open this link within ${facts.daysValid} days: ${facts.url}`,
    '',
    'If you did not expect this invitation, ignore this e-mail. Without the link, nobody can join.',
  ])
}

export function resetMail(facts: { email: string; url: string }): Mail {
  return mail(facts.email, 'Reset your Bootfarm password', [
    `To choose a new password, open this link within one hour: ${facts.url}`,
    '',
    'If you did not request this, ignore this e-mail. Your password does not change.',
  ])
}

export function verificationMail(facts: { email: string; url: string }): Mail {
  return mail(facts.email, 'Confirm your e-mail address for Bootfarm', [
    `To confirm this address, open this link within one hour: ${facts.url}`,
    '',
    'If you did not request this, ignore this e-mail.',
  ])
}

export function changeOfEmailMail(facts: { email: string; newEmail: string; url: string }): Mail {
  return mail(facts.email, 'Confirm the new e-mail address of your Bootfarm account', [
    `Someone signed in as you requested to change your address to ${oneLine(facts.newEmail)}.`,
    '',
    `If that was you, confirm within one hour: ${facts.url}`,
    '',
    'If it was not you, change your password. Your address does not change.',
  ])
}

export function alreadyKnownMail(facts: { email: string; url: string }): Mail {
  return mail(facts.email, 'You already have a Bootfarm account', [
    `Someone tried to sign up with this address, which already has an account: ${facts.url}`,
    '',
    'If that was you and you forgot your password, you can reset it there. If it was not you, ignore this e-mail.',
  ])
}

export function signUpMail(facts: { email: string; url: string }): Mail {
  return mail(facts.email, 'Create your Bootfarm account', [
    `To choose a name and a password, open this link within one hour: ${facts.url}`,
    '',
    'If you did not request this, ignore this e-mail. Without the link, no account is created.',
  ])
}

interface DeletionFacts {
  email: string
  organizationName: string
  askedByName: string
  deleteAfter: Date
  url: string
}

export function deletionAskedMail(facts: DeletionFacts): Mail {
  const organization = oneLine(facts.organizationName)
  return mail(facts.email, `${organization} will be deleted`, [
    `${oneLine(facts.askedByName)} has requested the deletion of the organization ${organization} and all of its data.`,
    '',
    `The organization is deleted after ${facts.deleteAfter.toISOString()}. Until then everything keeps working, and every owner can cancel the deletion: ${facts.url}`,
  ])
}

export function deletionCancelledMail(facts: Omit<DeletionFacts, 'deleteAfter'>): Mail {
  const organization = oneLine(facts.organizationName)
  return mail(facts.email, `${organization} will not be deleted`, [
    `${oneLine(facts.askedByName)} has cancelled the deletion of the organization ${organization}: ${facts.url}`,
  ])
}

export function deletionBegunMail(facts: { email: string; organizationName: string }): Mail {
  const organization = oneLine(facts.organizationName)
  return mail(facts.email, `${organization} is being deleted`, [
    `The deletion of the organization ${organization} can no longer be cancelled. Its data is being removed.`,
    '',
    'Its edges are revoked. Accounts of people remain, without this organization.',
  ])
}

interface AlertsFacts {
  email: string
  organizationName: string
  /** At least one. */
  alerts: { title: string; openedAt: string; closedAt: string | null; url: string }[]
  /** How many more there are. */
  others: number
  /** The page of alerts. */
  url: string
}

export function alertsMail({ email, organizationName, alerts, others, url }: AlertsFacts): Mail {
  const organization = oneLine(organizationName)
  const [first] = alerts
  const isOne = alerts.length === 1 && others === 0 && first
  const closed = first?.closedAt ? 'Closed: ' : ''
  const subject = isOne ? `${closed}${first.title}` : `${alerts.length + others} alerts of ${organization}`
  return mail(email, subject.slice(0, alertSubjectMax), [
    ...alerts.flatMap(({ title, openedAt, closedAt, url: boots }) => [
      oneLine(title),
      closedAt ? `Opened: ${openedAt}. Closed: ${closedAt}.` : `Opened: ${openedAt}.`,
      boots,
      '',
    ]),
    ...(others > 0 ? [`There are ${others} more.`, ''] : []),
    `All alerts of ${organization}: ${url}`,
    '',
    'You subscribed to these mails. To change that, open the page above and select "Mail".',
  ])
}

/** Longer subjects are cut off anyway; names are part of them. */
const alertSubjectMax = 200
