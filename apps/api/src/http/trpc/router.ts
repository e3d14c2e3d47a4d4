import type { inferRouterInputs, inferRouterOutputs } from '@trpc/server'
import { alertRouter } from '../../alert/router.ts'
import { apiKeyRouter } from '../../api-key/router.ts'
import { auditRouter } from '../../audit/router.ts'
import { bootRouter } from '../../boot/router.ts'
import { bootMenuRouter } from '../../boot-menu/router.ts'
import { cleaningRouter } from '../../cleaning/router.ts'
import { collectionRouter } from '../../collection/router.ts'
import { deviceRouter } from '../../device/router.ts'
import { discoveredRouter } from '../../discovery/router.ts'
import { diskCaptureRouter } from '../../disk-capture/router.ts'
import { edgeRouter } from '../../edge/router.ts'
import { eventRouter } from '../../event/router.ts'
import { experimentRouter } from '../../experiment/router.ts'
import { exploreRouter } from '../../explore/router.ts'
import { farmRouter } from '../../farm/router.ts'
import { findingRouter } from '../../finding/router.ts'
import { loadRouter } from '../../load/router.ts'
import { invitationRouter } from '../../member/invitation-router.ts'
import { memberRouter } from '../../member/router.ts'
import { serviceAccountRouter } from '../../member/service-account-router.ts'
import { networkRouter } from '../../network/router.ts'
import { objectiveRouter } from '../../objective/router.ts'
import { organizationRouter } from '../../organization/router.ts'
import { overviewRouter } from '../../overview/router.ts'
import { placementRouter } from '../../placement/router.ts'
import { platformRouter } from '../../platform/router.ts'
import { predictionRouter } from '../../prediction/router.ts'
import { retentionRouter } from '../../retention/router.ts'
import { rolloutRouter } from '../../rollout/router.ts'
import { scheduleRouter } from '../../schedule/router.ts'
import { searchRouter } from '../../search/router.ts'
import { setupRouter, signUpRouter } from '../../session/entrance-router.ts'
import { sessionRouter } from '../../session/router.ts'
import { siteRouter } from '../../site/router.ts'
import { spaceRouter } from '../../space/router.ts'
import { storeRouter } from '../../store/router.ts'
import { storeJobRouter } from '../../store-job/router.ts'
import { stormRouter } from '../../storm/router.ts'
import { trashRouter } from '../../trash/router.ts'
import { uploadRouter } from '../../upload/router.ts'
import { vdiskRouter } from '../../vdisk/router.ts'
import { versionRouter } from '../../vdisk/version-router.ts'
import { webhookRouter } from '../../webhook/router.ts'
import { router } from './trpc.ts'

export const appRouter = router({
  session: sessionRouter,
  search: searchRouter,
  audit: auditRouter,
  apiKey: apiKeyRouter,
  setup: setupRouter,
  organization: organizationRouter,
  platform: platformRouter,
  signUp: signUpRouter,
  member: memberRouter,
  serviceAccount: serviceAccountRouter,
  invitation: invitationRouter,
  webhook: webhookRouter,
  event: eventRouter,
  overview: overviewRouter,
  farm: farmRouter,
  finding: findingRouter,
  site: siteRouter,
  edge: edgeRouter,
  collection: collectionRouter,
  device: deviceRouter,
  discovered: discoveredRouter,
  boot: bootRouter,
  alert: alertRouter,
  objective: objectiveRouter,
  bootMenu: bootMenuRouter,
  schedule: scheduleRouter,
  rollout: rolloutRouter,
  vdisk: vdiskRouter,
  version: versionRouter,
  store: storeRouter,
  storeJob: storeJobRouter,
  storm: stormRouter,
  prediction: predictionRouter,
  explore: exploreRouter,
  experiment: experimentRouter,
  network: networkRouter,
  upload: uploadRouter,
  placement: placementRouter,
  diskCapture: diskCaptureRouter,
  retention: retentionRouter,
  cleaning: cleaningRouter,
  space: spaceRouter,
  load: loadRouter,
  trash: trashRouter,
})

export type { ScheduleReason } from '../../schedule/schema.ts'
export type AppRouter = typeof appRouter
export type RouterInputs = inferRouterInputs<AppRouter>
export type RouterOutputs = inferRouterOutputs<AppRouter>
export type { BootChange } from '../../boot/schema.ts'
