import { inOrganization } from '@bootfarm/db'
import type { PlatformContext } from '../context/service-context.ts'
import { createJoinToken } from '../edge/create-join-token.ts'
import type { Auth } from '../http/auth/auth.ts'
import { ensureUser, findUserId } from '../http/auth/create-user.ts'
import { ensureDemoRows, hasEnrolledEdge } from './ensure-demo-rows.ts'
import { type DemoSite, ensureDemoSite } from './ensure-demo-site.ts'
import { ensureSignInFile } from './sign-in-file.ts'

export interface DemoSetUp {
  email: string
  organizationId: string
  farmId: string
  siteId: string
  /** Null once an edge has enrolled. */
  joinToken: string | null
}

/** Makes what is missing of the demo. The password stays in `directory`; a person's own later choice of one is kept. */
export async function setUpDemo(context: PlatformContext, auth: Auth, directory: string): Promise<DemoSetUp> {
  const { signIn, isNew } = ensureSignInFile(directory)
  const known = await findUserId(auth, signIn.email)
  const userId = known && !isNew ? known : await ensureUser(auth, { name: 'Demo owner', ...signIn })
  const rows = await ensureDemoRows(context, userId)
  const { db, clock } = context
  const joinToken = await inOrganization(db, rows.organizationId, async (transaction) => {
    const inDemo = { db: transaction, clock }
    if (await hasEnrolledEdge(inDemo, rows)) return null
    return (await createJoinToken(inDemo, { ...rows, createdByUserId: null })).token
  })
  return { email: signIn.email, ...rows, joinToken }
}

/** Makes what is missing of one more site. */
export async function setUpDemoSite(
  { db, clock }: PlatformContext,
  demo: Pick<DemoSetUp, 'organizationId' | 'farmId'>,
  site: DemoSite,
): Promise<{ name: string; siteId: string; joinToken: string | null }> {
  const { organizationId } = demo
  return inOrganization(db, organizationId, async (transaction) => {
    const inDemo = { db: transaction, clock }
    const { siteId } = await ensureDemoSite(inDemo, demo, site)
    const joinToken = site.needsJoinToken
      ? (await createJoinToken(inDemo, { organizationId, siteId, createdByUserId: null })).token
      : null
    return { name: site.name, siteId, joinToken }
  })
}
