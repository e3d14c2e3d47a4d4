import { Tenant } from '../lib/control-plane/tenant.ts'
import { expect, type Page, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { signInAs } from './demo-sign-in.ts'

test.use({ storageState: { cookies: [], origins: [] } })

let tenant: Tenant
test.beforeEach(async ({ page }) => {
  tenant = await Tenant.create('admin')
  await signInAs(page, tenant.person)
})

const entries = (page: Page) => page.getByRole('listitem', { name: /^Entry \d+$/ })
const title = (page: Page, number: number) => page.getByLabel(`Title of entry ${number}`)
const save = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

/** Acts as another person's browser. */
async function renameElsewhere(page: Page, menuId: string, name: string): Promise<void> {
  const input = encodeURIComponent(JSON.stringify({ menuId }))
  const answer = await page.request.get(`/api/trpc/bootMenu.get?input=${input}`)
  const { result } = (await answer.json()) as { result: { data: object } }
  const renamed = await page.request.post('/api/trpc/bootMenu.update', {
    data: { ...result.data, menuId, name },
  })
  expect(renamed.status()).toBe(200)
}

test('a menu is created, ordered by keyboard, chosen for a collection and a device, and sent to the edge', async ({
  page,
}) => {
  await page.goto('/boot-menus')
  await expect(page.getByText('No boot menus yet.')).toBeVisible()
  await page.getByRole('link', { name: 'New menu' }).click()
  await page.getByLabel('Name').fill('Lab menu')
  await page.getByLabel('Timeout in seconds').fill('20')
  await page.getByRole('button', { name: 'Add vDisk' }).click()
  await expect(entries(page)).toHaveCount(2)
  await title(page, 2).fill('Café')
  await expect(page.getByText('remove “é”: boot loaders show plain ASCII')).toBeVisible()
  await save(page, 'Create boot menu').click()
  await expect(page.getByRole('alert').filter({ hasText: 'Entry 2:' })).toBeVisible()
  await title(page, 2).fill('Linux for everybody')
  await page.getByLabel('Version of entry 2').selectOption('version 1')

  // The focused button disappears together with its entry.
  const up = page.getByRole('button', { name: 'Move entry 2 up' })
  await up.focus()
  await page.keyboard.press('Enter')
  await expect(title(page, 1)).toHaveValue('Linux for everybody')
  await expect(page.getByRole('button', { name: 'Move entry 1 up' })).toBeFocused()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await expect(title(page, 2)).toHaveValue('Linux for everybody')
  await entries(page).nth(1).getByLabel('default').check()
  const screen = page.getByRole('figure')
  await expect(screen.locator('[aria-current]')).toHaveText('Linux for everybody')
  expect(await seriousProblems(page)).toEqual([])
  await save(page, 'Create boot menu').click()
  await expect(page.getByRole('heading', { level: 1, name: 'Lab menu' })).toBeVisible()
  await expect(page.getByText('Not used yet.')).toBeVisible()

  await page.goto(`/sites/${tenant.rows.siteId}`)
  await page.getByLabel('Boot menu of Lab').selectOption('Lab menu')
  const menuId = () => tenant.state().then(({ menus }) => menus?.[0]?.id)
  await expect.poll(menuId).toBeDefined()
  const { menus, devices } = await tenant.state()
  const { versionId } = tenant.rows
  expect(menus).toEqual([
    {
      id: menus?.[0]?.id,
      timeoutMs: 20_000,
      defaultEntry: 1,
      entries: [
        { kind: 'local_disk', title: 'Local disk' },
        { kind: 'version', title: 'Linux for everybody', versionId },
      ],
    },
  ])
  expect(new Set(devices.map((device) => device.menuId))).toEqual(new Set([menus?.[0]?.id]))

  await page.goto(`/devices/${tenant.rows.deviceIds[0]}`)
  const choice = page.getByLabel('Menu', { exact: true })
  await expect(choice).toHaveValue('collection')
  await choice.selectOption('No menu')
  await expect(page.getByRole('link', { name: 'Preview of Lab menu' })).toHaveCount(0)
  const own = async () => (await tenant.state()).devices.filter((device) => device.menuId === undefined)
  await expect.poll(async () => (await own()).map(({ name }) => name)).toEqual(['pc-01'])

  await page.goto(`/boot-menus/${menus?.[0]?.id}`)
  await expect(page.getByRole('table', { name: /that use this menu/ })).toContainText('collection, 5 devices')
  expect(await seriousProblems(page)).toEqual([])

  // Somebody else saves first: nothing is overwritten, and the typed text stays until the change is loaded.
  await page.getByLabel('Name').fill('Mine')
  await renameElsewhere(page, menus?.[0]?.id ?? '', 'Theirs')
  await save(page, 'Save').click()
  await expect(page.getByRole('alert').filter({ hasText: 'This boot menu was changed in the meantime' })).toBeVisible()
  await expect(page.getByLabel('Name')).toHaveValue('Mine')
  await page.getByRole('button', { name: 'Load latest version' }).click()
  await expect(page.getByLabel('Name')).toHaveValue('Theirs')
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  await page.getByRole('button', { name: 'Delete boot menu' }).click()
  await expect(page.getByText(/used by the collection Lab\. Choose another/).first()).toBeVisible()
})
