/** What is mailed to one person: plain text alone. */
export interface Mail {
  to: string
  subject: string
  text: string
}

/** Says whether a mail server has taken it. */
export type SendMail = (mail: Mail) => Promise<boolean>

/** Names that people choose, on one line: a line end in a subject would begin a header of its own. */
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
    `${oneLine(facts.invitedByName)} invites you to ${organization} on Bootfarm as ${oneLine(facts.role)}.`,
    '',
    `Accept within ${facts.daysValid} days: ${facts.url}`,
    '',
    'If you did not expect this, do nothing: without the link above nobody becomes a member.',
  ])
}

export function resetMail(facts: { email: string; url: string }): Mail {
  return mail(facts.email, 'A new password for Bootfarm', [
    `Choose a new password within an hour: ${facts.url}`,
    '',
    'If you did not ask for this, do nothing: your password stays as it is.',
  ])
}

export function verificationMail(facts: { email: string; url: string }): Mail {
  return mail(facts.email, 'Your e-mail address at Bootfarm', [
    `Confirm within an hour that this address is yours: ${facts.url}`,
    '',
    'If you did not ask for this, do nothing.',
  ])
}

export function changeOfEmailMail(facts: { email: string; newEmail: string; url: string }): Mail {
  return mail(facts.email, 'Another e-mail address for your account at Bootfarm', [
    `Somebody signed in as you asked for your address to become ${oneLine(facts.newEmail)}.`,
    '',
    `If that was you, say so within an hour: ${facts.url}`,
    '',
    'If it was not, change your password: the address stays as it is.',
  ])
}

export function alreadyKnownMail(facts: { email: string; url: string }): Mail {
  return mail(facts.email, 'You already have an account at Bootfarm', [
    `Somebody asked for a new account with this address, which has one: ${facts.url}`,
    '',
    'If that was you and the password is forgotten, ask for a new one there. If it was not, do nothing.',
  ])
}

export function signUpMail(facts: { email: string; url: string }): Mail {
  return mail(facts.email, 'Your account at Bootfarm', [
    `Choose a name and a password within an hour, and the account is yours: ${facts.url}`,
    '',
    'If you did not ask for this, do nothing: without the link above no account is made.',
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
  return mail(facts.email, `${organization} is to be deleted`, [
    `${oneLine(facts.askedByName)} has asked for the organization ${organization} to be deleted with all that it has.`,
    '',
    `That happens after ${facts.deleteAfter.toISOString()}. Until then everything goes on, and each owner can stop it: ${facts.url}`,
  ])
}

export function deletionCancelledMail(facts: Omit<DeletionFacts, 'deleteAfter'>): Mail {
  const organization = oneLine(facts.organizationName)
  return mail(facts.email, `${organization} is not deleted`, [
    `${oneLine(facts.askedByName)} has stopped the deletion of the organization ${organization}: ${facts.url}`,
  ])
}

export function deletionBegunMail(facts: { email: string; organizationName: string }): Mail {
  const organization = oneLine(facts.organizationName)
  return mail(facts.email, `${organization} is deleted`, [
    `The time in which the deletion of the organization ${organization} could be stopped is over: its data is being removed.`,
    '',
    'Its edges are revoked. Accounts of people stay, without this organization.',
  ])
}
