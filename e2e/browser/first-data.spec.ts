import { randomUUID } from 'node:crypto'
import { required } from '../lib/control-plane/api-client.ts'
import { ApiFront } from '../lib/control-plane/api-front.ts'
import { OwnDashboard } from '../lib/control-plane/own-dashboard.ts'
import { Tenant } from '../lib/control-plane/tenant.ts'
import { type Browser, type BrowserContext, expect, type Page, test } from '../lib/lab/page-test.ts'
import { bootRows } from './boot-rows.ts'
import { signInAs } from './demo-sign-in.ts'

// The HTML of the overview, of the boots and of a boot has the data that they show first.

test.use({ storageState: { cookies: [], origins: [] } })

const timeZone = 'Asia/Tokyo'
/** As a browser that opens a page; other requests get pages without data. */
const opens = { accept: 'text/html' }

type Session = Awaited<ReturnType<BrowserContext['storageState']>>

interface Reported {
  tenant: Tenant
  bootId: string
  session: Session
}

/** An organization of one ready boot, in which nothing else happens. */
async function oneBoot(browser: Browser): Promise<Reported> {
  const tenant = await Tenant.create()
  const bootId = randomUUID()
  await tenant.report({ id: bootId })
  const context = await browser.newContext({ timezoneId: timeZone })
  const page = await context.newPage()
  await signInAs(page, tenant.person)
  const session = await context.storageState()
  await context.close()
  return { tenant, bootId, session }
}

/** A second boot of the tenant, of its second device. */
async function reportAnother(tenant: Tenant): Promise<void> {
  await tenant.report({ id: randomUUID(), mac: tenant.rows.macs[1] ?? '' })
}

async function open(browser: Browser, options: { session: Session; hasScripts?: boolean }): Promise<Page> {
  const { session, hasScripts = true } = options
  const context = await browser.newContext({
    storageState: session,
    timezoneId: timeZone,
    javaScriptEnabled: hasScripts,
  })
  return context.newPage()
}

/** The procedures that the page's own requests call, from now on. */
function watchProcedures(page: Page): string[] {
  const called: string[] = []
  page.on('request', (request) => {
    const { pathname } = new URL(request.url())
    if (pathname.startsWith('/api/trpc/')) called.push(...pathname.slice('/api/trpc/'.length).split(','))
  })
  return called
}

/** Waits for the data as long as a busy machine may need. */
let patient: OwnDashboard
/** Has a control plane with troubles, for which it waits as long as any does. */
let troubled: OwnDashboard
let front: ApiFront
test.beforeAll(async () => {
  const api = required('BOOTFARM_API_URL')
  patient = await OwnDashboard.start({ API_URL: api, FIRST_DATA_LIMIT_MS: '60000' })
  front = new ApiFront(api)
  troubled = await OwnDashboard.start({ API_URL: await front.open() })
})
test.afterAll(async () => {
  front?.close()
  await Promise.all([patient?.stop(), troubled?.stop()])
})

const live = (page: Page) => page.getByRole('status').getByText('Live', { exact: true })

test('without scripts, the pages show their data, with instants in the viewer’s zone', async ({ browser }) => {
  const { bootId, session } = await oneBoot(browser)
  const page = await open(browser, { session, hasScripts: false })
  await page.goto(`${patient.url}/`)
  await expect(page.getByRole('table', { name: 'Latest boots' }).getByRole('link', { name: 'pc-01' })).toBeVisible()
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Overview')
  await expect(page.getByRole('region', { name: 'Sites and edges' })).toContainText('Site of')
  await expect(page.getByText('No boots in progress.')).toBeVisible()
  await page.goto(`${patient.url}/boots?outcome=ready&period=24h`)
  await expect(bootRows(page)).toHaveCount(1)
  await page.goto(`${patient.url}/boots?outcome=failed`)
  await expect(page.getByText('No boots match these filters.')).toBeVisible()
  await page.goto(`${patient.url}/boots/${bootId}`)
  await expect(page.getByRole('img', { name: /^Waterfall of/ })).toBeVisible()
  await expect(page.locator('time').first()).toContainText('GMT+9')
  await page.context().close()
})

test('the browser requests nothing again that the HTML has, no page before it is followed, and stays live', async ({
  browser,
}) => {
  const { tenant, session } = await oneBoot(browser)
  const page = await open(browser, { session })
  const errors: string[] = []
  page.on('pageerror', (error) => errors.push(error.message))
  const pages: string[] = []
  page.on('request', (request) => {
    if (new URL(request.url()).searchParams.has('_rsc')) pages.push(request.url())
  })
  const called = watchProcedures(page)
  await page.goto(`${patient.url}/boots`)
  await expect(live(page)).toBeVisible()
  await reportAnother(tenant)
  await expect(bootRows(page)).toHaveCount(2)
  // Once, since there is another boot.
  expect(called.filter((procedure) => procedure === 'boot.list')).toHaveLength(1)
  for (const known of ['session.me', 'session.access', 'organization.get']) expect(called).not.toContain(known)
  await page.goto(`${patient.url}/`)
  await expect(live(page)).toBeVisible()
  expect([pages, errors]).toEqual([[], []])
  await page.context().close()
})

test('a boot that changes after the server has read reaches the page when its live updates begin', async ({
  browser,
}) => {
  const { tenant, session } = await oneBoot(browser)
  const page = await open(browser, { session })
  const { promise: connected, resolve: connect } = Promise.withResolvers<void>()
  await page.route('**/api/trpc/boot.onChange*', async (route) => {
    await connected
    await route.continue()
  })
  await page.goto(`${patient.url}/boots`)
  await expect(bootRows(page)).toHaveCount(1)
  await reportAnother(tenant)
  connect()
  await expect(bootRows(page)).toHaveCount(2)
  await page.context().close()
})

test('nobody gets data of another session, whoever asks at the same time', async ({ browser }) => {
  const people = await Promise.all([oneBoot(browser), oneBoot(browser)])
  const visitors = await Promise.all(people.map(({ session }) => open(browser, { session })))
  const htmlOf = async (page: Page, path: string) =>
    (await page.request.get(`${patient.url}${path}`, { headers: opens })).text()
  for (const path of ['/', '/boots']) {
    const asked = Array.from({ length: 20 }, (_, index) => index % 2)
    const texts = await Promise.all(asked.map((who) => htmlOf(visitors[who] as Page, path)))
    const seen = texts.map((text) => people.map(({ bootId }) => text.includes(bootId)))
    expect(seen).toEqual(asked.map((who) => [who === 0, who === 1]))
  }
  const kept = await (visitors[0] as Page).request.get(`${patient.url}/boots`, { headers: opens })
  expect(kept.headers()['cache-control']).toContain('no-store')
  const [own, other] = people as [Reported, Reported]
  const [page] = visitors as [Page]
  const foreign = await htmlOf(page, `/boots/${other.bootId}`)
  expect([foreign.includes('pc-01'), foreign.includes(other.tenant.rows.macs[0] ?? '')]).toEqual([false, false])
  await page.goto(`${patient.url}/boots/${other.bootId}`)
  await expect(page.getByRole('alert').getByText('This boot does not exist.')).toBeVisible()
  const ended = { ...opens, cookie: own.session.cookies.map(({ name, value }) => `${name}=${value}`).join('; ') }
  await page.goto('/boots')
  await expect(live(page)).toBeVisible()
  await page.getByRole('button', { name: /^Or/ }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await expect(page.getByRole('button', { name: 'Sign in' })).toBeVisible()
  const afterwards = await fetch(`${patient.url}/boots`, { headers: ended })
  expect(await afterwards.text()).not.toContain(own.bootId)
  for (const visitor of visitors) await visitor.context().close()
})

test('a page whose data is late comes without, and the browser requests it', async ({ browser }) => {
  const { session } = await oneBoot(browser)
  const page = await open(browser, { session })
  const { promise: comes, resolve: release } = Promise.withResolvers<void>()
  front.hold = ({ name }) => (name.includes('boot.list') ? comes : Promise.resolve())
  const called = watchProcedures(page)
  await page.goto(`${troubled.url}/boots`)
  release()
  await expect(bootRows(page)).toHaveCount(1)
  expect(called).toContain('boot.list')
  front.hold = null
  await page.context().close()
})

test('a page whose data is refused shows its usual error, and loads on retry', async ({ browser }) => {
  const { session } = await oneBoot(browser)
  const page = await open(browser, { session })
  front.refuse = ({ name }) => (name.includes('boot.list') ? 503 : null)
  await page.goto(`${troubled.url}/boots`)
  const alert = page.getByRole('alert').filter({ hasText: 'Could not load boots.' })
  await expect(alert).toBeVisible()
  front.refuse = null
  await alert.getByRole('button', { name: 'Try again' }).click()
  await expect(bootRows(page)).toHaveCount(1)
  await page.context().close()
})

test('without an API, the dashboard says so', async ({ browser }) => {
  const { session } = await oneBoot(browser)
  const page = await open(browser, { session, hasScripts: false })
  front.refuse = () => 503
  await page.goto(`${troubled.url}/`)
  await expect(page.getByRole('alert').getByText('The control plane does not respond.')).toBeVisible()
  front.refuse = null
  await page.context().close()
})
