import { expect, type Locator, type Page } from '@playwright/test'

/** A wave of simulated boots comes every few seconds, and each takes some. */
export const bootTimeoutMs = 60_000

/** The rows of the list of boots, without its header. */
export function bootRows(page: Page): Locator {
  return page
    .getByRole('table', { name: 'Boots' })
    .getByRole('row')
    .filter({ has: page.getByRole('link') })
}

/** The address of the newest boot of the open list. */
export async function newestBoot(page: Page): Promise<string> {
  const link = bootRows(page).first().getByRole('link').first()
  await expect(link).toBeVisible({ timeout: bootTimeoutMs })
  return (await link.getAttribute('href')) ?? ''
}

/** The row of the boot with this address. */
export function bootRow(page: Page, href: string): Locator {
  return bootRows(page).filter({ has: page.locator(`a[href="${href}"]`) })
}

/** Opens the newest boot of a simulated device that is over and ready. */
export async function openReadyBoot(page: Page): Promise<void> {
  await page.goto('/boots?outcome=ready&origin=simulated')
  await page.goto(await newestBoot(page))
  await expect(page.getByRole('heading', { level: 1 })).toContainText('Boot of')
}
