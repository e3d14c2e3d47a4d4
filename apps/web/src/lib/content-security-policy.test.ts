import { expect, test } from 'vitest'
import { contentSecurityPolicy } from './content-security-policy.ts'

const policy = contentSecurityPolicy('bm9uY2U', { isDevelopment: false })

test('no inline script runs without the nonce of its answer, and none is made of text', () => {
  const [scripts] = policy.split('; ').filter((directive) => directive.startsWith('script-src'))
  expect(scripts).toBe("script-src 'self' 'nonce-bm9uY2U'")
})

test('no page is framed, and none loads anything from elsewhere', () => {
  expect(policy).toContain("frame-ancestors 'none'")
  expect(policy).toContain("default-src 'none'")
  expect(policy).not.toMatch(/https?:|\*/)
})
