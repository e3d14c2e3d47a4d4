import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect } from '@playwright/test'
import { required } from '../lib/control-plane/api-client.ts'

/**
 * Returns the newest link to a page that the API mailed to this address, once its log shows it: a mail goes out after
 * the API has answered the request.
 */
export async function mailedLink(email: string, page: 'invitation' | 'reset-password' | 'sign-up'): Promise<string> {
  const wanted = new RegExp(`/${page}/[\\w-]+`)
  const find = () => {
    const log = readFileSync(path.join(required('BOOTFARM_DATA'), 'logs/api.log'), 'utf8')
    const mailed = log.split('\n').findLast((line) => line.includes(email) && wanted.test(line))
    return wanted.exec(mailed ?? '')?.[0] ?? ''
  }
  await expect.poll(find, { message: `a link for ${email}` }).not.toBe('')
  return find()
}
