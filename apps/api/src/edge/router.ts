import { procedure, router } from '../http/trpc/trpc.ts'
import { edgeInstallation } from '../installation/public.ts'
import { rotateSigningKey } from '../organization/public.ts'
import { changedObject, doneView } from '../rules/changed-object.ts'
import { listEdgeImages } from '../store/public.ts'
import { edgeImagePage, edgeImagesInput } from '../store/schema.ts'
import { drainEdge, orderNewKey, renameEdge, revokeEdge, setShare } from './change-edge.ts'
import { getJoinToken, listJoinTokens, offerJoinToken, revokeJoinToken } from './create-join-token.ts'
import { getEdge } from './get-edge.ts'
import { listEdges } from './list-edges.ts'
import { listReleases, orderRelease } from './order-release.ts'
import {
  createdJoinToken,
  createJoinTokenInput,
  drainEdgeInput,
  edgeDetail,
  edgeGetInput,
  edgeListInput,
  edgePage,
  edgeReleases,
  edgeShareView,
  joinTokenInput,
  joinTokenList,
  joinTokenListInput,
  joinTokenView,
  orderedRelease,
  orderReleaseInput,
  revokeEdgeInput,
  revokeEdgeResult,
  rotateKeyInput,
  rotateKeyResult,
  setShareInput,
  signingKeyView,
  updateEdgeInput,
} from './schema.ts'

export const edgeRouter = router({
  list: procedure
    .meta({
      permission: 'edge.read',
      place: 'visible',
      rest: { method: 'GET', path: '/edges', summary: 'Edges' },
    })
    .input(edgeListInput)
    .output(edgePage)
    .query(({ ctx, input }) => listEdges(ctx, input)),
  get: procedure
    .meta({
      permission: 'edge.read',
      place: { kind: 'edge', id: 'edgeId' },
      rest: { method: 'GET', path: '/edges/{edgeId}', summary: 'An edge' },
    })
    .input(edgeGetInput)
    .output(edgeDetail)
    .query(({ ctx, input }) => getEdge(ctx, input.edgeId)),
  /** The images in its store that are no version of any vDisk. */
  images: procedure
    .meta({
      permission: 'vdisk.read',
      place: { kind: 'edge', id: 'edgeId' },
      rest: {
        method: 'GET',
        path: '/edges/{edgeId}/images',
        summary: 'Images in an edge’s store that belong to no vDisk',
      },
    })
    .input(edgeImagesInput)
    .output(edgeImagePage)
    .query(({ ctx, input }) => listEdgeImages(ctx, input)),
  /** The releases from which a new edge is installed. */
  installation: procedure
    .meta({
      permission: 'edge.change',
      place: 'visible',
      rest: { method: 'GET', path: '/edge-installation', summary: 'Installation source of a new edge' },
    })
    .output(edgeInstallation)
    .query(({ ctx }) => ctx.releases.describe()),
  createJoinToken: procedure
    .meta({
      permission: 'edge.change',
      place: { kind: 'site', id: 'siteId' },
      rest: {
        method: 'POST',
        path: '/sites/{siteId}/join-tokens',
        summary: 'Create a token for one edge of a site',
        creates: null,
      },
    })
    .input(createJoinTokenInput)
    .output(createdJoinToken)
    .mutation(({ ctx, input }) => offerJoinToken(ctx, input.siteId)),
  joinToken: procedure
    .meta({
      permission: 'edge.change',
      place: { kind: 'site', id: 'siteId' },
      rest: {
        method: 'GET',
        path: '/sites/{siteId}/join-tokens/{joinTokenId}',
        summary: 'State of a join token',
      },
    })
    .input(joinTokenInput)
    .output(joinTokenView)
    .query(({ ctx, input }) => getJoinToken(ctx, input)),
  joinTokens: procedure
    .meta({
      permission: 'edge.change',
      place: { kind: 'site', id: 'siteId' },
      rest: { method: 'GET', path: '/sites/{siteId}/join-tokens', summary: 'Unused join tokens of a site' },
    })
    .input(joinTokenListInput)
    .output(joinTokenList)
    .query(({ ctx, input }) => listJoinTokens(ctx, input)),
  revokeJoinToken: procedure
    .meta({
      permission: 'edge.change',
      place: { kind: 'site', id: 'siteId' },
      rest: {
        method: 'DELETE',
        path: '/sites/{siteId}/join-tokens/{joinTokenId}',
        summary: 'Revoke a join token',
      },
    })
    .input(joinTokenInput)
    .output(doneView)
    .mutation(({ ctx, input }) => revokeJoinToken(ctx, input)),
  update: procedure
    .meta({
      permission: 'edge.change',
      place: { kind: 'edge', id: 'edgeId' },
      rest: { method: 'PATCH', path: '/edges/{edgeId}', summary: 'Rename an edge' },
    })
    .input(updateEdgeInput)
    .output(changedObject)
    .mutation(({ ctx, input }) => renameEdge(ctx, input)),
  setShare: procedure
    .meta({
      permission: 'edge.change',
      place: { kind: 'edge', id: 'edgeId' },
      rest: { method: 'PUT', path: '/edges/{edgeId}/share', summary: 'Set which devices the edge serves' },
    })
    .input(setShareInput)
    .output(edgeShareView)
    .mutation(({ ctx, input }) => setShare(ctx, input)),
  drain: procedure
    .meta({
      permission: 'edge.drain',
      place: { kind: 'edge', id: 'edgeId' },
      rest: {
        method: 'PUT',
        path: '/edges/{edgeId}/draining',
        summary: 'Drain an edge, or resume new boots',
      },
    })
    .input(drainEdgeInput)
    .output(edgeShareView)
    .mutation(({ ctx, input }) => drainEdge(ctx, input)),
  rotateKey: procedure
    .meta({
      permission: 'edge.change',
      place: { kind: 'edge', id: 'edgeId' },
      rest: { method: 'POST', path: '/edges/{edgeId}/rotate-key', summary: 'Rotate the key of an edge' },
    })
    .input(rotateKeyInput)
    .output(rotateKeyResult)
    .mutation(({ ctx, input }) => orderNewKey(ctx, input)),
  rotateSigningKey: procedure
    .meta({
      permission: 'organization.change',
      place: 'organization',
      confirmed: true,
      rest: {
        method: 'POST',
        path: '/signing-key/rotate',
        summary: 'Rotate the key that signs desired states',
      },
    })
    .output(signingKeyView)
    .mutation(({ ctx }) => rotateSigningKey(ctx)),
  /** The releases in this control plane's repository. */
  releases: procedure
    .meta({
      permission: 'edge.read',
      place: 'visible',
      rest: { method: 'GET', path: '/edge-releases', summary: 'Releases that edges can be updated to' },
    })
    .output(edgeReleases)
    .query(({ ctx }) => listReleases(ctx.repository)),
  orderRelease: procedure
    .meta({
      permission: 'edge.change',
      place: { kind: 'edge', id: 'edgeId' },
      rest: { method: 'PUT', path: '/edges/{edgeId}/release', summary: 'Order the release that an edge runs' },
    })
    .input(orderReleaseInput)
    .output(orderedRelease)
    .mutation(({ ctx, input }) => orderRelease(ctx, ctx.repository, input)),
  revoke: procedure
    .meta({
      permission: 'edge.change',
      place: { kind: 'edge', id: 'edgeId' },
      rest: { method: 'POST', path: '/edges/{edgeId}/revoke', summary: 'Revoke an edge' },
    })
    .input(revokeEdgeInput)
    .output(revokeEdgeResult)
    .mutation(({ ctx, input }) => revokeEdge(ctx, input)),
})
