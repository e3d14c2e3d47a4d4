import path from 'node:path'
import { parseArgs } from 'node:util'
import { UserError } from '../lib/fail.mjs'
import { inRoot } from '../lib/paths.mjs'

/** Edge ports in the order of `--edge-ports`; wol is where simulated devices hear wake-on-LAN. */
const edgePortNames = ['dhcp', 'pxe', 'tftp', 'http', 'stream', 'wol']
const edgePortDefaults = '10067,14011,10069,10080,6910,10009'

export const usage = `Usage: npm start -- [options]

Starts PostgreSQL, the API, the dashboard, one edge and six simulated devices on this machine; Ctrl-C stops them.

  --data DIR          where databases, logs and demo images are kept (default .data; BOOTFARM_DATA)
  --web-port N        dashboard (default 3000)
  --api-port N        API (default 4000)
  --pg-port N         embedded PostgreSQL (default 54329); unused when DATABASE_URL is set
  --edge-ports LIST   UDP and TCP ports of the demo's edge: dhcp,pxe,tftp,http,stream,wol
                      (default ${edgePortDefaults})
  --wave-interval N   seconds between waves of simulated boots (default 45)
  --help              this text

DATABASE_URL          a PostgreSQL to use in place of the embedded one
`

export function readOptions(argv) {
  let values
  try {
    values = parseArgs({
      args: argv,
      options: {
        data: { type: 'string', default: process.env.BOOTFARM_DATA ?? inRoot('.data') },
        'web-port': { type: 'string', default: '3000' },
        'api-port': { type: 'string', default: '4000' },
        'pg-port': { type: 'string', default: '54329' },
        'edge-ports': { type: 'string', default: edgePortDefaults },
        'wave-interval': { type: 'string', default: '45' },
        help: { type: 'boolean', default: false },
      },
    }).values
  } catch (error) {
    throw new UserError(`${error.message}\n\n${usage}`)
  }
  const edgePorts = values['edge-ports'].split(',')
  if (edgePorts.length !== edgePortNames.length) {
    throw new UserError(`--edge-ports needs ${edgePortNames.length} numbers: ${edgePortNames.join(',')}.`)
  }
  return {
    help: values.help,
    data: path.resolve(values.data),
    webPort: portNumber('--web-port', values['web-port']),
    apiPort: portNumber('--api-port', values['api-port']),
    pgPort: portNumber('--pg-port', values['pg-port']),
    edgePorts: Object.fromEntries(
      edgePortNames.map((name, index) => [name, portNumber('--edge-ports', edgePorts[index])]),
    ),
    waveIntervalSeconds: positive('--wave-interval', values['wave-interval']),
    databaseUrl: process.env.DATABASE_URL || undefined,
  }
}

function portNumber(option, text) {
  const port = Number(text)
  if (!Number.isInteger(port) || port < 1 || port > 65535)
    throw new UserError(`${option} needs a port from 1 to 65535, not "${text}".`)
  return port
}

function positive(option, text) {
  const number = Number(text)
  if (!Number.isInteger(number) || number < 1)
    throw new UserError(`${option} needs a whole number from 1 on, not "${text}".`)
  return number
}
