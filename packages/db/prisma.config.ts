import { defineConfig } from 'prisma/config'

/** For the Prisma CLI alone (generate, migrate), which has no other way in; programs pass their URL to `createDb`. */
export default defineConfig({
  schema: 'prisma/schema',
  migrations: { path: 'prisma/migrations' },
  ...(process.env.DATABASE_URL ? { datasource: { url: process.env.DATABASE_URL } } : {}),
})
