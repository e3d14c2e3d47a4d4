import { expect, test } from '../lib/lab/page-test.ts'
import { demoSignIn, signIn } from './demo-sign-in.ts'

test.use({ storageState: { cookies: [], origins: [] } })

test('a wrong password gets one clear sentence, the right one opens the overview', async ({ page }) => {
  await page.goto('/sign-in')
  await signIn(page, { ...demoSignIn(), password: 'not-the-password' })
  await expect(page.getByText('The e-mail address or password is incorrect.')).toBeVisible()
  await expect(page.getByLabel('Password')).toBeFocused()
  await signIn(page, demoSignIn())
  await expect(page).toHaveURL('/')
  await expect(page.getByRole('heading', { name: 'Booting now' })).toBeVisible()
})

test('the first load of the sign-in page takes at most 150 kB of compressed scripts', async ({ page }) => {
  const scripts: Promise<{ url: string; size: number; encoding: string | undefined }>[] = []
  page.on('response', (response) => {
    if (response.request().resourceType() !== 'script') return
    scripts.push(
      (async () => ({
        url: response.url(),
        size: (await response.request().sizes()).responseBodySize,
        encoding: (await response.allHeaders())['content-encoding'],
      }))(),
    )
  })
  await page.goto('/sign-in')
  await expect(page.getByRole('button', { name: 'Sign in' })).toBeEnabled()
  const loaded = await Promise.all(scripts)
  expect(loaded.length).toBeGreaterThan(3)
  for (const { url, encoding } of loaded) expect(`${url} ${encoding}`).toMatch(/ gzip$/)
  expect(loaded.reduce((sum, { size }) => sum + size, 0)).toBeLessThanOrEqual(150_000)
})

test('a page that was requested while signed out opens after sign-in, with its filters', async ({ page }) => {
  await page.goto('/boots?outcome=ready')
  await expect(page).toHaveURL(/\/sign-in\?next=/)
  await signIn(page, demoSignIn())
  await expect(page).toHaveURL('/boots?outcome=ready')
  await expect(page.getByRole('heading', { level: 1, name: 'Boots' })).toBeVisible()
})

test('sign-in never leads to another host', async ({ page }) => {
  await page.goto('/sign-in?next=//example.com/')
  await signIn(page, demoSignIn())
  await expect(page).toHaveURL('/')
})

test('after sign-out every page asks to sign in', async ({ page }) => {
  await page.goto('/sign-in')
  await signIn(page, demoSignIn())
  // The page's program runs: before, nothing listens to a click.
  await expect(page.getByRole('status').getByText('Live', { exact: true })).toBeVisible()
  await page.getByRole('button', { name: /Demo/ }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await expect(page.getByRole('button', { name: 'Sign in' })).toBeVisible()
  await page.goto('/devices')
  await expect(page).toHaveURL('/sign-in?next=%2Fdevices')
})
