import { tracked } from '@trpc/server'
import { procedure, router, watchingProcedure, withMappedErrors } from '../http/trpc/trpc.ts'
import { getFilesRead } from './files-read/get-files-read.ts'
import { bootFilesRead, bootFilesReadInput } from './files-read/schema.ts'
import { getBoot } from './get-boot.ts'
import { getBootCapture } from './get-boot-capture.ts'
import { getBootConsole } from './get-boot-console.ts'
import { getNewestChange } from './get-newest-change.ts'
import { getUsual } from './get-usual.ts'
import { listBoots } from './list-boots.ts'
import {
  bootCapture,
  bootCaptureInput,
  bootChangeInput,
  bootConsole,
  bootConsoleInput,
  bootDetail,
  bootGetInput,
  bootListInput,
  bootPage,
  newestChangeView,
} from './schema.ts'
import { bootUsual } from './usual-times.ts'
import { watchBoots } from './watch-boots.ts'

export const bootRouter = router({
  list: procedure
    .meta({
      permission: 'boot.read',
      place: 'visible',
      rest: { method: 'GET', path: '/boots', summary: 'Boots' },
    })
    .input(bootListInput)
    .output(bootPage)
    .query(({ ctx, input }) => listBoots(ctx, input)),
  get: procedure
    .meta({
      permission: 'boot.read',
      place: { kind: 'boot', id: 'bootId' },
      rest: { method: 'GET', path: '/boots/{bootId}', summary: 'A boot, phase by phase' },
    })
    .input(bootGetInput)
    .output(bootDetail)
    .query(({ ctx, input }) => getBoot(ctx, { bootId: input.bootId, detailKeptDays: ctx.bootRetention.detailDays })),
  usual: procedure
    .meta({
      permission: 'boot.read',
      place: { kind: 'boot', id: 'bootId' },
      rest: {
        method: 'GET',
        path: '/boots/{bootId}/usual',
        summary: 'How long earlier boots of the device and of its version took',
      },
    })
    .input(bootGetInput)
    .output(bootUsual)
    .query(({ ctx, input }) => getUsual(ctx, input.bootId)),
  console: procedure
    // A console shows what a system prints for those who run it.
    .meta({
      permission: 'boot.inspect',
      place: { kind: 'boot', id: 'bootId' },
      rest: { method: 'GET', path: '/boots/{bootId}/console', summary: 'Serial console output of a boot' },
    })
    .input(bootConsoleInput)
    .output(bootConsole)
    .query(({ ctx, input }) =>
      getBootConsole(ctx, {
        bootId: input.bootId,
        after: input.after,
        directory: ctx.consolesDirectory,
        organization: ctx.consolesOrganization,
      }),
    ),
  capture: procedure
    // Like the console; a script for a loader contains the boot's token.
    .meta({
      permission: 'boot.inspect',
      place: { kind: 'boot', id: 'bootId' },
      rest: { method: 'GET', path: '/boots/{bootId}/capture', summary: 'Packet capture of a boot' },
    })
    .input(bootCaptureInput)
    .output(bootCapture)
    .query(({ ctx, input }) => getBootCapture(ctx, input.bootId)),
  filesRead: procedure
    .meta({
      permission: 'boot.read',
      place: { kind: 'boot', id: 'bootId' },
      rest: { method: 'GET', path: '/boots/{bootId}/files-read', summary: 'Files that a boot read' },
    })
    .input(bootFilesReadInput)
    .output(bootFilesRead)
    .query(({ ctx, input }) => getFilesRead(ctx, input.bootId)),
  newestChange: procedure
    .meta({
      permission: 'boot.read',
      place: 'visible',
      rest: { excluded: 'for pages that are made before they connect: REST has no lists that are kept up to date' },
    })
    .output(newestChangeView)
    .query(({ ctx }) => getNewestChange(ctx)),
  onChange: watchingProcedure
    .meta({
      permission: 'boot.read',
      place: 'visible',
      rest: { excluded: 'server-sent events: /api/trpc/boot.onChange takes an API key, too' },
    })
    .input(bootChangeInput)
    .subscription(async function* ({ ctx, input, signal = new AbortController().signal }) {
      const after = input?.lastEventId ? BigInt(input.lastEventId) : null
      const open = input?.bootId ? { bootId: input.bootId, detailKeptDays: ctx.bootRetention.detailDays } : null
      const { actor } = ctx
      const sessionId = actor.kind === 'person' ? ((await ctx.findPerson())?.sessionId ?? null) : null
      const changes = watchBoots(ctx, { actor, sessionId, open }, { feeds: ctx.bootFeeds, signal, after })
      for await (const { id, event } of withMappedErrors(ctx, changes, signal)) yield tracked(id, event)
    }),
})
