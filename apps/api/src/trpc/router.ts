import type { inferRouterInputs, inferRouterOutputs } from '@trpc/server'
import { apiKeyRouter } from './routers/api-key-router.ts'
import { auditRouter } from './routers/audit-router.ts'
import { bootMenuRouter } from './routers/boot-menu-router.ts'
import { bootRouter } from './routers/boot-router.ts'
import { collectionRouter } from './routers/collection-router.ts'
import { deviceRouter } from './routers/device-router.ts'
import { discoveredRouter } from './routers/discovered-router.ts'
import { edgeRouter } from './routers/edge-router.ts'
import { farmRouter } from './routers/farm-router.ts'
import { invitationRouter } from './routers/invitation-router.ts'
import { memberRouter } from './routers/member-router.ts'
import { organizationRouter } from './routers/organization-router.ts'
import { platformRouter } from './routers/platform-router.ts'
import { scheduleRouter } from './routers/schedule-router.ts'
import { sessionRouter } from './routers/session-router.ts'
import { setupRouter } from './routers/setup-router.ts'
import { signUpRouter } from './routers/sign-up-router.ts'
import { siteRouter } from './routers/site-router.ts'
import { storeJobRouter } from './routers/store-job-router.ts'
import { storeRouter } from './routers/store-router.ts'
import { trashRouter } from './routers/trash-router.ts'
import { vdiskRouter } from './routers/vdisk-router.ts'
import { versionRouter } from './routers/version-router.ts'
import { webhookRouter } from './routers/webhook-router.ts'
import { router } from './trpc.ts'

export const appRouter = router({
  session: sessionRouter,
  audit: auditRouter,
  apiKey: apiKeyRouter,
  setup: setupRouter,
  organization: organizationRouter,
  platform: platformRouter,
  signUp: signUpRouter,
  member: memberRouter,
  invitation: invitationRouter,
  webhook: webhookRouter,
  farm: farmRouter,
  site: siteRouter,
  edge: edgeRouter,
  collection: collectionRouter,
  device: deviceRouter,
  discovered: discoveredRouter,
  boot: bootRouter,
  bootMenu: bootMenuRouter,
  schedule: scheduleRouter,
  vdisk: vdiskRouter,
  version: versionRouter,
  store: storeRouter,
  storeJob: storeJobRouter,
  trash: trashRouter,
})

export type AppRouter = typeof appRouter
export type RouterInputs = inferRouterInputs<AppRouter>
export type RouterOutputs = inferRouterOutputs<AppRouter>
