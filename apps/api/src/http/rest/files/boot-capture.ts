import { inOrganization } from '@bootfarm/db'
import { readCaptureFile } from '../../../boot/get-boot-capture.ts'
import { bootCaptureInput } from '../../../boot/schema.ts'
import { fileOperation } from './file-operation.ts'

const type = 'application/vnd.tcpdump.pcap'

export const bootCapture = fileOperation({
  id: 'boot.captureFile',
  path: '/boots/{bootId}/capture.pcap',
  summary: 'The packets of a boot as a file',
  description: 'For Wireshark and tcpdump: the packets before the stream, where the site keeps them.',
  policy: { permission: 'boot.inspect', place: { kind: 'boot', id: 'bootId' } },
  input: bootCaptureInput,
  types: [type],
  async open({ db, actor }, { bootId }) {
    const { name, pcap } = await inOrganization(db, actor.organizationId, (tenant) =>
      readCaptureFile({ db: tenant, actor }, bootId),
    )
    return { name, type, body: Buffer.from(pcap) }
  },
})
