import path from 'node:path'
import { expect, test } from '../lib/lab/page-test.ts'
import { demoSignIn, signIn } from './demo-sign-in.ts'

test('sign in once for the other tests', async ({ page }) => {
  await page.goto('/sign-in')
  await signIn(page, demoSignIn())
  await expect(page.getByRole('navigation', { name: 'Main' })).toBeVisible()
  await page.context().storageState({ path: path.join(test.info().project.outputDir, 'session.json') })
})
