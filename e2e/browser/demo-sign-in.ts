import { expect, type Page } from '@playwright/test'

/** The demo's sign-in of the product under test. */
export function demoSignIn(): { email: string; password: string } {
  const { BOOTFARM_DEMO_EMAIL: email, BOOTFARM_DEMO_PASSWORD: password } = process.env
  if (!email || !password)
    throw new Error('Set BOOTFARM_WEB_URL, BOOTFARM_DEMO_EMAIL and BOOTFARM_DEMO_PASSWORD of a running product.')
  return { email, password }
}

/** Fills and sends the form of the sign-in page that is open. */
export async function signIn(page: Page, { email, password }: { email: string; password: string }): Promise<void> {
  await page.getByLabel('E-mail').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

/** Goes to the sign-in page, signs in, and is there once the overview is. */
export async function signInAs(page: Page, person: { email: string; password: string }): Promise<void> {
  await page.goto('/sign-in')
  await signIn(page, person)
  await expect(page.getByRole('heading', { name: 'Booting now' })).toBeVisible()
}
