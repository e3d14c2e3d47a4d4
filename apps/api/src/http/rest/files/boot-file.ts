import { inOrganization } from '@bootfarm/db'
import { bootFileInput, bootFileTypes, readBootFile } from '../../../boot/export/read-boot-file.ts'
import { fileOperation } from './file-operation.ts'

export const bootFile = fileOperation({
  id: 'boot.file',
  path: '/boots/{bootId}/export',
  summary: 'A boot with its critical path as a file',
  description: 'Where the time of a boot went: for programs, for spreadsheets, and for viewers of traces.',
  policy: { permission: 'boot.read', place: { kind: 'boot', id: 'bootId' } },
  input: bootFileInput,
  types: [bootFileTypes.json, 'text/csv'],
  async open({ db, actor, clock, bootRetention }, { bootId, format }) {
    const { name, type, text } = await inOrganization(db, actor.organizationId, (tenant) =>
      readBootFile({ db: tenant, actor, clock }, { bootId, format, detailKeptDays: bootRetention.detailDays }),
    )
    return { name, type, body: Buffer.from(text) }
  },
})
