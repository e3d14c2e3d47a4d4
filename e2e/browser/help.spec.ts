import { expect, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { bootTimeoutMs, newestBoot } from './boot-rows.ts'

test('the documentation is found by its titles, and its pages lead to each other', async ({ page }) => {
  await page.goto('/help')
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Help')
  await expect(page.getByRole('link', { name: 'Write caches', exact: true })).toBeVisible()
  expect(await seriousProblems(page)).toEqual([])
  await page.getByLabel('Search titles').fill('boot fail')
  await page.getByRole('list', { name: 'Found titles' }).getByRole('link', { name: 'Why a boot failed' }).click()
  await expect(page).toHaveURL('/help/guides/operations#why-a-boot-failed')
  await expect(page.getByRole('heading', { name: /^Why a boot failed/ })).toBeInViewport()
  expect(await seriousProblems(page)).toEqual([])
  await page.getByRole('link', { name: 'files read', exact: true }).click()
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Files read')
  await page.goto('/help/guides/nothing')
  await expect(page.getByText('This page does not exist.')).toBeVisible()
})

test('a failed boot leads to what the documentation says about its cause', async ({ page }) => {
  test.setTimeout(bootTimeoutMs)
  await page.goto('/boots?outcome=failed&period=30d')
  await page.goto(await newestBoot(page))
  await page.getByRole('link', { name: 'More about this cause' }).click()
  await expect(page).toHaveURL(/\/help\/(guides|reference)\/[a-z-]+#[a-z-_]+$/)
  const anchor = new URL(page.url()).hash.slice(1)
  await expect(page.locator(`[id="${anchor}"]`)).toBeInViewport()
})
