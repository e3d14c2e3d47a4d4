import { expect, type Page, untilHydrated } from '../lib/lab/page-test.ts'

/** The demo account of the product under test. */
export function demoSignIn(): { email: string; password: string } {
  const { BOOTFARM_DEMO_EMAIL: email, BOOTFARM_DEMO_PASSWORD: password } = process.env
  if (!email || !password)
    throw new Error('Set BOOTFARM_WEB_URL, BOOTFARM_DEMO_EMAIL and BOOTFARM_DEMO_PASSWORD of a running product.')
  return { email, password }
}

/** Fills in and submits the open sign-in form. */
export async function signIn(page: Page, { email, password }: { email: string; password: string }): Promise<void> {
  await page.getByLabel('E-mail').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

/** Opens the sign-in page, signs in, and returns once the overview is open. */
export async function signInAs(page: Page, person: { email: string; password: string }): Promise<void> {
  await page.goto('/sign-in')
  await untilHydrated(page)
  await signIn(page, person)
  await expect(page.getByRole('heading', { name: 'Booting now' })).toBeVisible()
  await untilHydrated(page)
}

/**
 * Ends the page's session. The page is left first: one that learns that the person was signed out goes to the sign-in
 * page by itself, even in the middle of the test's next step.
 */
export async function leaveSession(page: Page): Promise<void> {
  await page.goto('about:blank')
  await page.context().clearCookies()
}
