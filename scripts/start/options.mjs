import path from 'node:path'
import { parseArgs } from 'node:util'
import { UserError } from '../lib/fail.mjs'
import { inRoot } from '../lib/paths.mjs'

/** Edge ports in the order of `--edge-ports`; wol is where simulated devices hear wake-on-LAN. */
const edgePortNames = ['dhcp', 'pxe', 'tftp', 'http', 'stream', 'wol', 'peer']
const edgePortDefaults = '10067,14011,10069,10080,6910,10009,6911'

export const usage = `Usage: npm start -- [options]

Starts PostgreSQL, the API, the dashboard, one edge, six simulated devices and two unregistered ones on this machine.
Ctrl-C stops them.

  --data DIR          directory for databases, logs and demo images (default .data; BOOTFARM_DATA)
  --web-port N        dashboard (default 3000)
  --api-port N        API (default 4000)
  --pg-port N         embedded PostgreSQL (default 54329); unused when DATABASE_URL is set
  --edge-ports LIST   UDP and TCP ports of the demo's edge: dhcp,pxe,tftp,http,stream,wol,peer
                      (default ${edgePortDefaults})
  --wave-interval N   seconds between waves of simulated boots (default 45)
  --machine [uefi]    also boots a virtual machine with real firmware (bios, or uefi), kernel and system from a second
                      edge in network namespaces; needs root
  --lan IP            also serves real machines at this address of this machine, beside the LAN's DHCP server; needs
                      root. They boot Debian, or your raw disk image with --disk FILE, and optionally --kernel FILE,
                      --initrd FILE and --cmdline TEXT (docs/guides/real-machines.md)
  --optimised         waits for the optimised edge; otherwise the first start uses a quick build and builds the
                      optimised edge in the background (--machine and --lan always wait)
  --help              this text

DATABASE_URL          a PostgreSQL to use instead of the embedded one, with the API's role, which is created if missing
DATABASE_OWNER_URL    the same database with the role that owns the tables; required with DATABASE_URL
`

const firmwares = ['bios', 'uefi']

export function readOptions(argv) {
  let values
  try {
    values = parseArgs({
      args: withFirmware(argv),
      options: {
        data: { type: 'string', default: process.env.BOOTFARM_DATA ?? inRoot('.data') },
        'web-port': { type: 'string', default: '3000' },
        'api-port': { type: 'string', default: '4000' },
        'pg-port': { type: 'string', default: '54329' },
        'edge-ports': { type: 'string', default: edgePortDefaults },
        'wave-interval': { type: 'string', default: '45' },
        machine: { type: 'string' },
        lan: { type: 'string' },
        disk: { type: 'string' },
        kernel: { type: 'string' },
        initrd: { type: 'string' },
        cmdline: { type: 'string' },
        optimised: { type: 'boolean', default: false },
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
    lan: lanOptions(values),
    machine: values.machine && oneOf('--machine', values.machine, firmwares),
    isOptimised: values.optimised || values.machine !== undefined || values.lan !== undefined,
    waveIntervalSeconds: positive('--wave-interval', values['wave-interval']),
    database: databaseOptions(process.env),
  }
}

/** The firmware of `--machine` may be left out. */
function withFirmware(argv) {
  return argv.flatMap((argument, index) => {
    const next = argv[index + 1]
    if (argument === '--machine' && (next === undefined || next.startsWith('--'))) return ['--machine', 'bios']
    return [argument]
  })
}

/** Undefined for the embedded PostgreSQL. */
function databaseOptions({ DATABASE_URL: url, DATABASE_OWNER_URL: ownerUrl }) {
  if (!url && !ownerUrl) return undefined
  if (url && ownerUrl) return { url, ownerUrl }
  throw new UserError(
    `${url ? 'DATABASE_URL goes with DATABASE_OWNER_URL' : 'DATABASE_OWNER_URL goes with DATABASE_URL'}: the API signs in as a role that owns nothing.
  DATABASE_OWNER_URL   signs in as the owner of the tables${url ? ': what DATABASE_URL was until now' : ''}
  DATABASE_URL         the same with another user and a password of your choice, such as postgresql://bootfarm:PASSWORD@HOST/DATABASE;
                       this user is created if it is missing`,
  )
}

function lanOptions({ lan, disk, kernel, initrd, cmdline }) {
  const own = { '--disk': disk, '--kernel': kernel, '--initrd': initrd, '--cmdline': cmdline }
  const first = Object.entries(own).find(([, value]) => value !== undefined)?.[0]
  if (!lan && first) throw new UserError(`${first} goes with --lan IP.`)
  if (lan && first && !disk) throw new UserError(`${first} goes with --disk FILE.`)
  if (kernel === undefined && (initrd ?? cmdline) !== undefined)
    throw new UserError('--initrd and --cmdline go with --kernel FILE.')
  const absolute = (file) => file && path.resolve(file)
  return (
    lan && {
      ip: lan,
      disk: absolute(disk),
      kernel: absolute(kernel),
      initrd: absolute(initrd),
      commandLine: cmdline ?? '',
    }
  )
}

function oneOf(option, text, values) {
  if (!values.includes(text)) throw new UserError(`${option} is ${values.join(' or ')}, not "${text}".`)
  return text
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
