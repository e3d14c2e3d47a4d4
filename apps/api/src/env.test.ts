import { expect, test } from 'vitest'
import { readEnvironment } from './env.ts'

const complete = {
  DATABASE_URL: 'postgresql://a:b@127.0.0.1/c',
  BETTER_AUTH_SECRET: 'a secret of at least 32 characters',
}

test('what may be left out has a default', () => {
  expect(readEnvironment(complete)).toMatchObject({
    API_HOST: '127.0.0.1',
    API_PORT: 4000,
    WEB_URL: 'http://localhost:3000',
    BOOTFARM_BOOT_SUMMARY_DAYS: 400,
    BOOTFARM_BOOT_DETAIL_DAYS: 30,
  })
})

test('consoles belong to one organization, which has to be named', () => {
  const consoles = { ...complete, BOOTFARM_CONSOLES: '/var/consoles' }
  expect(() => readEnvironment(consoles)).toThrow(/BOOTFARM_CONSOLES needs BOOTFARM_CONSOLES_ORGANIZATION/)
  expect(readEnvironment({ ...consoles, BOOTFARM_CONSOLES_ORGANIZATION: 'acme' })).toMatchObject({
    BOOTFARM_CONSOLES_ORGANIZATION: 'acme',
  })
})

test('one sentence names everything that is missing or wrong', () => {
  expect(() => readEnvironment({ API_PORT: 'http', BETTER_AUTH_SECRET: 'short' })).toThrow(
    /^The environment is incomplete: DATABASE_URL is not set; API_PORT .*; BETTER_AUTH_SECRET must have at least 32 characters\.$/,
  )
})
