import { expect, type Locator, type Page } from '@playwright/test'

/** A wave of simulated boots starts every few seconds, and each boot takes several seconds. */
export const bootTimeoutMs = 180_000

/** Finds the rows of the boot list, without its header. */
export function bootRows(page: Page): Locator {
  return page
    .getByRole('table', { name: 'Boots' })
    .getByRole('row')
    .filter({ has: page.getByRole('link') })
}

/** Returns the URL of the newest boot in the open list. */
export async function newestBoot(page: Page): Promise<string> {
  const link = bootRows(page).first().getByRole('link').first()
  await expect(link).toBeVisible({ timeout: bootTimeoutMs })
  return (await link.getAttribute('href')) ?? ''
}

/** Finds the row of the boot with this URL. */
export function bootRow(page: Page, href: string): Locator {
  return bootRows(page).filter({ has: page.locator(`a[href="${href}"]`) })
}

/** Opens the newest finished boot of a simulated device that became ready. */
export async function openReadyBoot(page: Page): Promise<void> {
  await page.goto('/boots?outcome=ready&origin=simulated')
  await page.goto(await newestBoot(page))
  await expect(page.getByRole('heading', { level: 1 })).toContainText('Boot of')
}
