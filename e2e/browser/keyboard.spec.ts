import { expect, test } from '../lib/lab/page-test.ts'

test('the first Tab offers to skip to the content', async ({ page }) => {
  await page.goto('/devices')
  await expect(page.getByRole('table', { name: 'Devices' })).toBeVisible()
  await page.keyboard.press('Tab')
  const skip = page.getByRole('link', { name: 'Skip to content' })
  await expect(skip).toBeFocused()
  await page.keyboard.press('Enter')
  await page.keyboard.press('Tab')
  await expect(page.getByRole('link', { name: 'Export CSV' })).toBeFocused()
})

test('pages and rows are reached with the keyboard alone', async ({ page }) => {
  await page.goto('/')
  const devices = page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Devices' })
  await devices.focus()
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { level: 1, name: 'Devices' })).toBeVisible()
  await expect(devices).toHaveAttribute('aria-current', 'page')
  const first = page.getByRole('table', { name: 'Devices' }).getByRole('link').first()
  await first.focus()
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(/\/devices\/[0-9a-f-]{36}$/)
})

test('the user menu opens, closes with Escape and returns the focus', async ({ page }) => {
  await page.goto('/')
  // From then on the page's own script has taken over what the server sent.
  await expect(page.getByTitle('Updates appear here live.')).toBeVisible()
  const menu = page.getByRole('button', { name: /Demo/ })
  await menu.focus()
  await page.keyboard.press('Enter')
  await expect(page.getByRole('menu').locator('[role^="menuitem"]').first()).toBeFocused()
  await page.keyboard.press('End')
  await expect(page.getByRole('menuitem', { name: 'Sign out' })).toBeFocused()
  await page.keyboard.press('Escape')
  await expect(menu).toBeFocused()
})

test('the theme is chosen with the keyboard, applies at once, and holds on the next page', async ({ page }) => {
  await page.goto('/')
  await page.getByRole('radio', { name: 'Dark' }).focus()
  await page.keyboard.press('Space')
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark')
  const answer = await page.request.get('/devices')
  expect(await answer.text()).toMatch(/<html[^>]* data-theme="dark"/)
  await page.getByRole('radio', { name: 'System' }).click()
  await expect(page.locator('html')).not.toHaveAttribute('data-theme', /./)
})
