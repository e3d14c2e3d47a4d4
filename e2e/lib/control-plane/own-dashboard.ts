import { freePorts } from '../../../scripts/lib/free-ports.mjs'
import { webProgram } from '../lab/programs.ts'
import { RunningProcess } from '../lab/running-process.ts'

/** A second dashboard of the product under test, with settings of its own. Sessions hold for both. */
export class OwnDashboard {
  readonly url: string
  readonly #web: RunningProcess

  private constructor(url: string, web: RunningProcess) {
    this.url = url
    this.#web = web
  }

  /** @param env settings of the dashboard, among them the API_URL of the product's API or of a front of it */
  static async start(env: { API_URL: string } & Record<string, string>): Promise<OwnDashboard> {
    const [port] = await freePorts(1)
    const url = `http://localhost:${port}`
    const web = new RunningProcess(process.execPath, [webProgram], {
      NODE_ENV: 'production',
      PORT: String(port),
      HOSTNAME: '127.0.0.1',
      WEB_URL: url,
      ...env,
    })
    await web.waitFor(/Ready in/)
    return new OwnDashboard(url, web)
  }

  stop(): Promise<unknown> {
    return this.#web.stop()
  }
}
