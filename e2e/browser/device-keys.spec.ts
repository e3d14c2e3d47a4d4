import { randomBytes, randomUUID } from 'node:crypto'
import type { DeviceKeyReport } from '@bootfarm/proto/uplink'
import { Tenant } from '../lib/control-plane/tenant.ts'
import { expect, type Page, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { leaveSession, signInAs } from './demo-sign-in.ts'

// The key in a device's TPM: what people see of it and decide. The test plays the edge; faults/device-keys.test.ts uses
// a real one.

test.use({ storageState: { cookies: [], origins: [] } })

let tenant: Tenant
test.beforeEach(async ({ page }) => {
  tenant = await Tenant.create('admin')
  await signInAs(page, tenant.person)
})

const key = () => randomBytes(32)
const shown = (fingerprint: Buffer) => fingerprint.toString('hex').match(/.{8}/g)?.join(' ') ?? ''
const banner = (page: Page) => page.getByRole('region', { name: 'Key of this device' })
const panel = (page: Page) => page.getByRole('region', { name: 'Device key', exact: true })
const dialog = (page: Page) => page.getByRole('dialog')
const open = (page: Page, index = 0) => page.goto(`/devices/${tenant.rows.deviceIds[index]}`)
let startedUnixMs = Date.now() - 600_000

/** The edge reports its judgement on the newest boot of a device. */
async function judged(label: DeviceKeyReport['label'], claimed?: Buffer, { index = 0, revision = 0 } = {}) {
  startedUnixMs += 1_000
  const deviceKey = { label, revision, ...(claimed ? { key: claimed.toString('base64') } : {}) }
  await tenant.report({ id: randomUUID(), mac: tenant.rows.macs[index] ?? '', startedUnixMs, deviceKey })
}

test('an alarm leads from the overview to the device, and a key that changed meanwhile is not approved unseen', async ({
  page,
}) => {
  const [known, seen, newest] = [key(), key(), key()]
  await judged('key_known', known)
  await judged('no_key', undefined, { index: 1 })
  await open(page)
  await expect(panel(page)).toContainText('Key known')
  await expect(panel(page)).toContainText(shown(known))
  await expect(panel(page)).toContainText('Accepted at the first boot')
  await expect(banner(page)).toHaveCount(0)

  await judged('key_changed', seen)
  await page.goto('/')
  const alarms = page.getByRole('region', { name: 'Keys of devices' })
  await expect(alarms).toContainText('1 device did not prove the known key of its TPM')
  await alarms.getByRole('link', { name: '1 device' }).click()
  await expect(page.getByRole('combobox', { name: 'Key' })).toHaveValue('alarm')
  const rows = page.getByRole('table', { name: 'Devices' }).getByRole('row')
  await expect(rows).toHaveCount(2)
  await expect(rows.nth(1)).toContainText('Another key than before')
  await page.getByRole('link', { name: 'pc-01' }).click()

  await expect(banner(page)).toContainText('has proved another key than the one that is known')
  await page.getByRole('button', { name: 'Decide on key' }).click()
  await expect(dialog(page)).toContainText(shown(known))
  await expect(dialog(page)).toContainText(shown(seen))
  expect(await seriousProblems(page)).toEqual([])
  await judged('key_changed', newest)
  await dialog(page).getByRole('radio', { name: 'Approve the new key' }).check()
  await dialog(page).getByRole('button', { name: 'Save decision' }).click()
  await expect(dialog(page).getByRole('alert')).toContainText(`has proved another key since: ${newest.toString('hex')}`)
  await page.keyboard.press('Escape')

  await page.reload()
  await page.getByRole('button', { name: 'Decide on key' }).click()
  await expect(dialog(page)).toContainText(shown(newest))
  await dialog(page).getByRole('radio', { name: 'Approve the new key' }).check()
  await dialog(page).getByRole('button', { name: 'Save decision' }).click()
  await expect(dialog(page)).toHaveCount(0)
  await expect(banner(page)).toHaveCount(0)
  await expect(panel(page)).toContainText(shown(newest))
  await expect(panel(page)).toContainText('Decided by')
  const { devices } = await tenant.state()
  expect(devices.find(({ id }) => id === tenant.rows.deviceIds[0])?.key).toBe(newest.toString('base64'))
})

test('a person keeps the known key, forgets it, and says that a device has none', async ({ page }) => {
  await judged('key_known', key())
  await judged('key_missing')
  await open(page)
  const decide = async (name: string) => {
    await page.getByRole('button', { name: 'Decide on key' }).click()
    await dialog(page).getByRole('radio', { name }).check()
    await dialog(page).getByRole('button', { name: 'Save decision' }).click()
    await expect(dialog(page)).toHaveCount(0)
  }
  await expect(banner(page)).toContainText('has not proved the known key')
  await decide('Keep the known key')
  await expect(banner(page)).toHaveCount(0)
  await expect(panel(page)).toContainText('Key known')
  await decide('Forget the known key')
  await expect(panel(page)).toContainText('No edge has checked the key of this device yet')
  await decide('This device has no key')
  await expect(panel(page)).toContainText('No TPM key')
  await expect(panel(page)).toContainText('Somebody has decided that this device has no key')
})

test('a collection requires approvals, knowing what that costs, and its waiting keys are approved at once', async ({
  page,
}) => {
  const { collectionId, siteId, macs } = tenant.rows
  await page.goto(`/sites/${siteId}`)
  await page
    .getByRole('button', { name: /^Edit / })
    .first()
    .click()
  await dialog(page).getByLabel('Keys of devices').selectOption('Require approval of each key')
  await expect(dialog(page)).toContainText('waits until somebody has compared its fingerprint')
  await dialog(page).getByLabel('Devices without a known key get').selectOption('Nothing')
  await expect(dialog(page)).toContainText('Devices that wait for approval do not boot either.')
  expect(await seriousProblems(page)).toEqual([])
  await dialog(page).getByRole('button', { name: 'Save' }).click()
  await expect(dialog(page)).toHaveCount(0)
  expect((await tenant.state()).keyPolicies).toEqual([{ learn: 'approve', without: 'nothing' }])

  const keys = macs.map(() => key())
  for (const [index, one] of keys.entries()) await judged('key_waits', one, { index, revision: 1 })
  await open(page)
  await expect(banner(page)).toContainText('nobody has approved yet. Until then it gets nothing')
  await page.goto(`/devices?collection=${collectionId}`)
  await expect(page.getByRole('table', { name: 'Devices' }).getByText('Key waits for approval')).toHaveCount(
    macs.length,
  )
  await page.getByRole('button', { name: 'Approve waiting keys' }).click()
  await dialog(page)
    .getByRole('button', { name: `Approve ${macs.length} keys` })
    .click()
  await expect(dialog(page)).toHaveCount(0)
  await expect(page.getByRole('region', { name: 'Keys that wait' })).toHaveCount(0)
  const { devices } = await tenant.state()
  expect(devices.map((device) => device.key).sort()).toEqual(keys.map((one) => one.toString('base64')).sort())
})

test('who may only look sees how a device is known, and no button', async ({ page }) => {
  await judged('signature_invalid')
  await leaveSession(page)
  await signInAs(page, await tenant.member('viewer'))
  await open(page)
  await expect(banner(page)).toContainText('has sent a wrong signature')
  await expect(page.getByRole('button', { name: 'Decide on key' })).toHaveCount(0)
})
