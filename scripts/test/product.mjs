import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { UserError } from '../lib/fail.mjs'
import { freePorts } from '../lib/free-ports.mjs'
import { inRoot, root } from '../lib/paths.mjs'
import { countProcessorTime } from '../lib/processor-time.mjs'

const portsNeeded = 10
/** Tests write consoles of an organization that they make; with `--machine` they are those of the demo's machine. */
const consolesOrganization = 'consoles'
const testSettings = {
  DATABASE_URL: '',
  DATABASE_OWNER_URL: '',
  SELF_SERVICE: 'on',
  // Receivers of webhooks in tests listen on this machine.
  WEBHOOK_ALLOW_NETWORKS: '127.0.0.0/8',
}

/**
 * Starts the whole product as `npm start` does, with a data directory and ports of its own, and stops it after `work`.
 * @template T
 * @param {(env: Record<string, string>) => Promise<T>} work gets the addresses and the sign-in as environment for test
 *   runners
 * @param {string[]} options further ones of `npm start`; the last of two equal ones counts
 * @returns {Promise<T>}
 */
export async function withProduct(scratch, work, options = []) {
  const data = mkdtempSync(path.join(scratch, 'product-'))
  // PostgreSQL's account goes through: else its data would be kept elsewhere, and stay when this folder goes.
  for (const folder of [scratch, data]) chmodSync(folder, 0o711)
  const ports = await freePorts(portsNeeded)
  // Tests plant organizations in the product's database, with what it seals.
  const secretsKey = randomBytes(32).toString('base64')
  const [web, api, postgres, ...edge] = ports
  const args = ['--data', data, '--web-port', web, '--api-port', api, '--pg-port', postgres]
  args.push('--edge-ports', edge.join(','), '--wave-interval', '15', '--optimised', ...options)
  const product = spawn(process.execPath, [inRoot('scripts/start.mjs'), ...args.map(String)], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    // Empty until a test puts releases there.
    env: {
      ...process.env,
      ...testSettings,
      SECRETS_KEY: secretsKey,
      BOOTFARM_EDGE_UPDATES: path.join(data, 'updates'),
      BOOTFARM_CONSOLES_ORGANIZATION: options.includes('--machine') ? '' : consolesOrganization,
    },
  })
  countProcessorTime(product)
  let output = ''
  let result
  const ended = new Promise((resolve) => product.once('exit', resolve))
  try {
    await new Promise((resolve, reject) => {
      for (const stream of [product.stdout, product.stderr]) {
        stream.on('data', (text) => {
          output += text
          if (output.includes('Ctrl-C stops everything')) resolve()
        })
      }
      ended.then(() => reject(new UserError(`npm start ended before it was ready:\n${output}`)))
    })
    const signIn = JSON.parse(readFileSync(path.join(data, 'demo-sign-in.json'), 'utf8'))
    result = await work({
      BOOTFARM_WEB_URL: `http://localhost:${web}`,
      BOOTFARM_API_URL: `http://127.0.0.1:${api}`,
      BOOTFARM_EDGE_HTTP_PORT: String(edge[3]),
      BOOTFARM_DATA: data,
      SECRETS_KEY: secretsKey,
      BOOTFARM_CONSOLES_ORGANIZATION: consolesOrganization,
      BOOTFARM_START_ARGS: JSON.stringify(args.map(String)),
      BOOTFARM_DEMO_EMAIL: signIn.email,
      BOOTFARM_DEMO_PASSWORD: signIn.password,
    })
  } catch (error) {
    throw new UserError(`${error.message}\n${logs(data)}`)
  } finally {
    product.kill('SIGTERM')
    await ended
  }
  if (product.exitCode !== 0)
    throw new UserError(`npm start ended with ${product.exitCode ?? product.signalCode} after SIGTERM:\n${output}`)
  return result
}

function logs(data) {
  const folder = path.join(data, 'logs')
  if (!existsSync(folder)) return ''
  return readdirSync(folder)
    .map((file) => `--- ${file}\n${readFileSync(path.join(folder, file), 'utf8').slice(-3000)}`)
    .join('\n')
}
