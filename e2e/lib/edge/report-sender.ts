import { readFileSync } from 'node:fs'
import path from 'node:path'
import { type BootReport, uplinkVersion } from '@bootfarm/proto/uplink'
import { signText, uplinkSignedText } from '@bootfarm/proto/uplink-signature'

const reportsPath = '/edge/v1/reports'

/** Sends reports as an edge does, signed with its key; `data` is the edge's data directory. */
export class ReportSender {
  readonly #api: string
  readonly #edgeId: string
  readonly #key: Buffer
  readonly #epoch: number

  constructor(api: string, data: string) {
    this.#api = api
    const read = (name: string) => readFileSync(path.join(data, name), 'utf8').trim()
    this.#edgeId = (JSON.parse(read('identity.json')) as { edgeId: string }).edgeId
    this.#key = Buffer.from(read('edge.key'), 'hex')
    this.#epoch = Number(read('epoch'))
  }

  /** `bootEpoch` must be one that the edge itself does not use, since the edge numbers its own reports. */
  async report(bootEpoch: number, boots: BootReport[]): Promise<void> {
    const reports = boots.map((boot, index) => ({ seq: index + 1, type: 'boot', boot }))
    const body = Buffer.from(JSON.stringify({ bootEpoch, fromSeq: 1, reports }))
    const facts = {
      method: 'POST',
      path: reportsPath,
      edgeId: this.#edgeId,
      bootEpoch: this.#epoch,
      counter: 1,
      body,
    }
    const answer = await fetch(`${this.#api}${reportsPath}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'bootfarm-edge': this.#edgeId,
        'bootfarm-uplink': String(uplinkVersion),
        'bootfarm-epoch': String(facts.bootEpoch),
        'bootfarm-counter': String(facts.counter),
        'bootfarm-signature': signText(uplinkSignedText(facts), this.#key),
      },
      body,
    })
    if (!answer.ok) throw new Error(`the API answered ${answer.status}: ${await answer.text()}`)
    const { ackedSeq } = (await answer.json()) as { ackedSeq: number }
    if (ackedSeq !== boots.length) throw new Error(`${ackedSeq} of ${boots.length} reports were taken`)
  }
}
