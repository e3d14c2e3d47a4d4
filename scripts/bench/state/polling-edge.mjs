import { EdgeClient, heartbeatWith } from '../../../apps/api/test/edge-client.ts'
import { makeJoinToken } from '../../../apps/api/test/test-tenant.ts'
import { stateDigest } from '../../../packages/proto/src/state-delta.ts'
import { pollWaitMs, uplinkVersion } from '../../../packages/proto/src/uplink.ts'
import { applyStateDelta } from '../../../packages/proto/test/apply-state-delta.ts'

/** An edge that keeps its desired state up to date, as packages/proto/UPLINK.md specifies. */
export class PollingEdge {
  #url
  #client
  #after = '0.0'
  /** The state that it has. */
  payload = ''

  constructor(url, client) {
    this.#url = url
    this.#client = client
  }

  static async enrolled(place, tenant) {
    const client = await EdgeClient.enrolled(place.url, await makeJoinToken(place, tenant))
    return new PollingEdge(place.url, client)
  }

  /**
   * Waits for the next state. Throws if none comes in time, or if it is not the change of the one before.
   * @returns {Promise<{ at: number, bytes: number }>} when the answer was there, by `performance.now`, and its size
   */
  async poll() {
    const base = this.payload === '' ? '' : `&base=${stateDigest(this.payload)}`
    const path = `/edge/v1/state?after=${this.#after}&waitMs=${pollWaitMs}${base}`
    const body = JSON.stringify(heartbeatWith({ clockUnixMs: Date.now() }))
    const answer = await fetch(this.#url + path, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'bootfarm-uplink': `${uplinkVersion}`,
        ...this.#client.signatureOf('POST', path, body),
      },
      body,
    })
    const text = await answer.text()
    const at = performance.now()
    if (answer.status !== 200) throw new Error(`the poll answered ${answer.status} ${text}`)
    const { payload, delta } = JSON.parse(text)
    const next = delta ? applyStateDelta(this.payload, delta) : payload
    if (next === null) throw new Error('the answer is a change of another state.')
    this.payload = next
    const { incarnation, counter } = JSON.parse(next)
    this.#after = `${incarnation}.${counter}`
    return { at, bytes: Buffer.byteLength(text) }
  }
}
