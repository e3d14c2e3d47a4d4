import { expect, test } from '../lib/lab/page-test.ts'

test('an empty list explains itself and the next step', async ({ page }) => {
  await page.goto('/devices?search=no-such-device')
  await expect(page.getByText('No devices match these filters.')).toBeVisible()
  await page.getByRole('button', { name: 'Clear' }).click()
  await expect(page.getByRole('table', { name: 'Devices' })).toBeVisible()
})

test('the address of a missing object shows that it does not exist', async ({ page }) => {
  await page.goto('/boots/00000000-0000-4000-8000-000000000000')
  await expect(page.getByRole('alert').getByText('This boot does not exist.')).toBeVisible()
  await page.goto('/devices/not-an-id')
  await expect(page.getByRole('alert').getByText('This device does not exist.')).toBeVisible()
  await page.goto('/no-such-page')
  await expect(page.getByText('This page does not exist.')).toBeVisible()
})

test('a list that cannot be loaded shows an error, and loads on retry', async ({ page }) => {
  await page.goto('/')
  await page.route('**/api/trpc/**', (route) => route.abort())
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'vDisks' }).click()
  const alert = page.getByRole('alert').filter({ hasText: 'Could not load vDisks.' })
  await expect(alert).toBeVisible()
  await page.unroute('**/api/trpc/**')
  await alert.getByRole('button', { name: 'Try again' }).click()
  await expect(page.getByRole('table', { name: 'vDisks' })).toBeVisible()
})
