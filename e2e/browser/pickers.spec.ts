import { Tenant } from '../lib/control-plane/tenant.ts'
import { expect, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { signInAs } from './demo-sign-in.ts'

// A picker lists 100 objects at a time; each of the others is found by a search or by the next page.

test.use({ storageState: { cookies: [], origins: [] } })

const collectionCount = 101
/** Parallel requests to the API. */
const requestsAtOnce = 8
const nameOf = (number: number) => `room-${String(number).padStart(3, '0')}`

test('a picker of more than 100 objects reaches each of them, and keeps a choice while another is searched', async ({
  page,
}) => {
  const tenant = await Tenant.create('admin')
  await signInAs(page, tenant.person)
  const numbers = Array.from({ length: collectionCount }, (_, index) => index + 1)
  while (numbers.length > 0) {
    const answers = await Promise.all(
      numbers.splice(0, requestsAtOnce).map((number) =>
        page.request.post('/api/trpc/collection.create', {
          data: { siteId: tenant.rows.siteId, name: nameOf(number), vdiskId: null },
        }),
      ),
    )
    for (const answer of answers) expect(answer.status(), await answer.text()).toBe(200)
  }

  await page.goto('/devices')
  await page.getByRole('button', { name: 'New device' }).click()
  const dialog = page.getByRole('dialog')
  const picker = dialog.getByLabel('Collection', { exact: true })
  const last = picker.locator('option', { hasText: nameOf(collectionCount) })
  await expect(picker.locator('option', { hasText: nameOf(1) })).toHaveCount(1)
  await expect(last).toHaveCount(0)
  expect(await seriousProblems(page)).toEqual([])

  await dialog.getByRole('button', { name: 'Load more' }).click()
  await expect(last).toHaveCount(1)
  await expect(dialog.getByRole('button', { name: 'Load more' })).toHaveCount(0)

  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'New device' }).click()
  const search = dialog.getByLabel('Search collections')
  await search.fill(nameOf(collectionCount).toUpperCase())
  await expect(picker.locator('option')).toHaveCount(1)
  await picker.selectOption({ index: 0 })
  await search.fill(nameOf(1))
  await expect(picker.locator('option', { hasText: nameOf(1) })).toHaveCount(1)
  await expect(picker.locator('option:checked')).toContainText(nameOf(collectionCount))
  await dialog.getByLabel('Name', { exact: true }).fill('far-away')
  await dialog.getByLabel('MAC address').fill('02:00:00:00:00:aa')
  await dialog.getByRole('button', { name: 'Create device' }).click()
  await expect(page.getByRole('row').filter({ hasText: 'far-away' })).toContainText(nameOf(collectionCount))
})
