import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, type Page } from '@playwright/test'

/** An emulated machine on two cores takes half a minute to start a full system. */
export const bootTimeoutMs = 400_000

export async function openMachine(page: Page): Promise<void> {
  await page.goto('/devices')
  await page.getByRole('link', { name: 'machine-1' }).click()
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('machine-1')
}

/** The page's label for what the machine is doing now. */
export const stateOf = (page: Page, word: string) => page.getByRole('main').getByText(word, { exact: true }).first()

const bootsOf = (page: Page) => page.getByRole('region', { name: 'Boots of this device' })
export const newestBoot = (page: Page) => bootsOf(page).getByRole('row').nth(1)
export const bootCount = (page: Page) =>
  bootsOf(page)
    .getByRole('row')
    .filter({ has: page.getByRole('link') })
    .count()

/** The machine keeper's log: when its emulator started and ended. */
export const keeperLog = () => readFileSync(path.join(process.env.BOOTFARM_DATA ?? '', 'logs/machines.log'), 'utf8')
