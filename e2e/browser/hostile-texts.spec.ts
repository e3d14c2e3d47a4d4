import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { hostileTexts } from '@bootfarm/api/testing/hostile-strings'
import { hostileCause, type Planted, plantHostileTexts } from '@bootfarm/api/testing/hostile-texts'
import { hostileRelease, listTestReleases } from '@bootfarm/api/testing/releases'
import { createDb } from '@bootfarm/db'
import { ApiClient, required } from '../lib/control-plane/api-client.ts'
import { Tenant } from '../lib/control-plane/tenant.ts'
import { expect, type Page, test } from '../lib/lab/page-test.ts'
import { leaveSession } from './demo-sign-in.ts'
import { mailedLink } from './mailed-link.ts'

// Text that devices, edges and people wrote, on every page.

test.use({ storageState: { cookies: [], origins: [] } })

/** Runs before any script of a page. */
function watchPage(): void {
  const told: string[] = []
  Object.assign(window, { told })
  for (const name of ['alert', 'confirm', 'prompt'] as const) Object.assign(window, { [name]: () => told.push(name) })
  document.addEventListener('securitypolicyviolation', ({ violatedDirective, sample, blockedURI }) =>
    told.push(`${violatedDirective} ${blockedURI} ${sample}`),
  )
  // Elements that have measured themselves keep that width, so the page must fit before a busy computer measures it
  // again.
  class NeverMeasured {
    observe() {}
    unobserve() {}
    disconnect() {}
  }
  Object.assign(window, { ResizeObserver: NeverMeasured })
}

/** Returns everything that ran, was created or was refused and that none of our pages runs, creates or requests. */
function findHarm(): string[] {
  const { told = [], hacked } = window as unknown as { told?: string[]; hacked?: unknown }
  const ofTexts = 'img[src="x"], [onerror], [onload], [onfocus], [onmouseover], [href^="javascript:" i]'
  const elements = [...document.querySelectorAll(ofTexts)].map(({ outerHTML }) => outerHTML.slice(0, 100))
  const scripts = [...document.scripts].filter((script) => script.text.trim() === 'window.hacked=1')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
  const bends = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/
  const bending = bends.exec(document.querySelector('main')?.textContent ?? '')
  return [
    ...told,
    ...(hacked === undefined ? [] : ['a text was run']),
    ...elements,
    ...scripts.map(({ outerHTML }) => outerHTML),
    ...(bending ? [`a character that bends text: ${bending[0].charCodeAt(0).toString(16)}`] : []),
  ]
}

const app = path.join(import.meta.dirname, '../../apps/web/src/app')
const routes = readdirSync(app, { recursive: true, encoding: 'utf8' })
  .filter((file) => path.basename(file) === 'page.tsx')
  .map((file) => `/${path.dirname(file)}`.replace(/\/\.$/, '/'))
  .sort()
/** Pages in groups are for signed-in people; most of the others redirect such a person. */
const isOfPerson = (route: string) => route.startsWith('/(') || route === '/welcome'
/** The others show only what their reader has just typed. */
const showsTexts = (route: string) => route.startsWith('/(') || route === '/invitation/[token]'
const withoutGroup = (route: string) => route.replace(/\/\([^)]*\)/g, '') || '/'

/** Pages that show some hostile text before they have loaded what they are about. */
const textsOf: Record<string, string[]> = {
  // A boot that does not exist: the link of one that does opens the boot's own page.
  '/b/[linkId]': ['This organization has no boot'],
  // What is shown there was written here.
  '/help/[[...path]]': [],
  '/lab': [hostileTexts['an element']],
  '/lab/[experimentId]': [hostileTexts['an element']],
  // A driver's name has 16 bytes.
  '/network': [hostileTexts['an element'].slice(0, 16)],
  '/edges/rollouts': [hostileRelease, hostileTexts['an element that fails']],
  '/edges/rollouts/new': [hostileRelease, hostileTexts['an element']],
  '/edges/rollouts/[rolloutId]': [
    hostileRelease,
    hostileTexts['an element'],
    hostileCause.replaceAll('_', ' ').slice(1),
    'Paused',
  ],
}

type Names = Record<string, string>

/** Fills in a route's bracketed names with the planted objects. */
const addressOf = (route: string, names: Names) =>
  withoutGroup(route)
    .replace(/\/\[\[\.\.\.\w+\]\]/, '')
    .replace(/\[(\w+)\]/g, (_, name: string) => {
      const id = route.startsWith('/invitation/') ? names.invitation : names[name]
      if (!id) throw new Error(`${route}: plantHostileTexts makes no ${name} yet; it has to be tried, too`)
      return id
    })

const wide = { width: 1280, height: 800 }
const narrow = { width: 390, height: 844 }
/** Allows for a busy machine. */
const pageMsMax = 60_000

/** Records what was wrong with any of the hostile texts that a page showed. */
class Watched {
  readonly problems: string[] = []
  shown = ''
  readonly page: Page

  constructor(page: Page) {
    this.page = page
    page.on('dialog', (dialog) => {
      this.problems.push(`a dialog: ${dialog.message()}`)
      void dialog.dismiss()
    })
    page.on('pageerror', (error) => this.problems.push(`${page.url()}: ${error.message}`))
    page.on('console', (message) => {
      // A link that nobody was sent.
      if (message.type() !== 'error' || /status of 40[34]/.test(message.text())) return
      this.problems.push(`${page.url()}: ${message.text()}`)
    })
  }

  async look(address: string, texts: string[]): Promise<void> {
    const { page, problems } = this
    const answer = await page.goto(address, { waitUntil: 'commit' })
    await expect(page.getByRole('heading', { level: 1 }).first()).toBeVisible({ timeout: pageMsMax })
    await expect(page.getByRole('status', { name: /^Loading/ })).toHaveCount(0, { timeout: pageMsMax })
    for (const text of texts) await expect(page.getByRole('main').first()).toContainText(text, { timeout: pageMsMax })
    const { pathname } = new URL(page.url())
    if (pathname !== address) problems.push(`${address} shows ${pathname}`)
    const policy = answer?.headers()['content-security-policy'] ?? ''
    const scripts = policy.split(';').find((directive) => directive.trim().startsWith('script-src'))
    if (!scripts || /unsafe|\*|http:|https:|data:/.test(scripts)) problems.push(`${address}: ${policy}`)
    for (const { width, height } of [narrow, wide]) {
      await page.setViewportSize({ width, height })
      const needed = await page.evaluate(() => document.documentElement.scrollWidth)
      if (needed > width) problems.push(`${address}: ${needed} px wide in ${width}`)
    }
    for (const harm of await page.evaluate(findHarm)) problems.push(`${address}: ${harm}`)
    this.shown += (await page.getByRole('main').first().textContent()) ?? ''
  }
}

/** Nobody writes a finding, but its names are those of others. */
async function plantFinding(db: ReturnType<typeof createDb>, { rows }: Tenant): Promise<string> {
  const { organizationId, siteId, vdiskId } = rows
  const names = {
    vdiskName: hostileTexts['an element'],
    value: hostileTexts['an element that fails'],
    valueName: hostileTexts['an element that fails'],
    hardware: hostileTexts['an element of a picture'],
  }
  const failures = { failedBefore: 0, failedAfter: 0, failedPhase: 'stage2', failedCause: hostileCause }
  const [since, openedAt, checkedAt] = [new Date(), new Date(), new Date()]
  const total = { beforeUs: 40_000_000, afterUs: 50_000_000 }
  const alsoChanged = [{ factor: 'setting', value: names.value, name: names.valueName }]
  const evidence = { before: [], after: [], total, phases: [], alsoChanged, smallestShift: null, ...failures }
  const found = { kind: 'slower', factor: 'edge_release', load: 'few', since, openedAt, checkedAt } as const
  const place = { organizationId, id: randomUUID(), siteId, vdiskId }
  const { id } = await db.finding.create({ data: { ...place, ...names, ...found, evidence } })
  return id
}

/** An owner who is also a platform operator, and whose name, user agent and address are as hostile as the rest. */
async function plant(page: Page): Promise<Names> {
  const tenant = await Tenant.create('owner')
  const { email, password } = tenant.person
  const [webUrl, data] = [required('BOOTFARM_WEB_URL'), required('BOOTFARM_DATA')]
  const db = createDb(readFileSync(path.join(data, 'postgres.url'), 'utf8').trim())
  const { id: userId } = await db.user.update({ where: { email }, data: { isPlatformOperator: true } })
  const findingId = await plantFinding(db, tenant)
  await db.$disconnect()
  const headers = {
    origin: webUrl,
    'user-agent': '<img src=x onerror=window.hacked=1> Firefox/1',
    'x-forwarded-for': '<svg onload=window.hacked=1>',
  }
  const own = { name: '<script>window.hacked=1</script>' }
  for (const [what, body] of Object.entries({ 'sign-in/email': { email, password }, 'update-user': own })) {
    const answer = await page.request.post(`/api/auth/${what}`, { headers, data: body })
    expect(answer.status(), await answer.text()).toBe(200)
  }
  listTestReleases(path.join(data, 'updates'), [hostileRelease])
  const client = await ApiClient.signIn(webUrl, email, password)
  const planted: Planted = await plantHostileTexts({
    url: required('BOOTFARM_API_URL'),
    rows: tenant.rows,
    joinTokens: [await tenant.joinToken(), await tenant.joinToken()],
    now: Date.now(),
    release: hostileRelease,
    mutate: (procedure, input) => client.mutate(procedure, input),
  })
  const invited = `${randomUUID()}@example.test`
  await client.mutate('invitation.create', { email: invited, role: 'viewer', scope: {} })
  const invitation = path.basename(await mailedLink(invited, 'invitation'))
  const token = randomUUID()
  const linkId = token.replaceAll('-', '').slice(0, 12)
  return { ...planted, userId, token, invitation, findingId, linkId }
}

test('hostile text is shown as text on every page, never runs, and never breaks a layout', async ({ page }) => {
  // Visits every page, one after the other.
  test.slow()
  const names = await plant(page)
  await page.addInitScript(watchPage)
  const watched = new Watched(page)
  const look = (route: string) =>
    watched.look(addressOf(route, names), textsOf[withoutGroup(route)] ?? (showsTexts(route) ? ['hacked'] : []))
  for (const route of routes.filter(isOfPerson)) await look(route)
  await leaveSession(page)
  for (const route of routes.filter((one) => !isOfPerson(one))) await look(route)
  expect(watched.problems).toEqual([])
  // The planted scripts were there to run.
  for (const text of ['<script>', 'onerror=window.hacked=1', 'javascript:window', '{{constructor'])
    expect(watched.shown).toContain(text)
})
