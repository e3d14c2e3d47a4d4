import { closeSync, ftruncateSync, mkdirSync, openSync, rmSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { UserError } from '../../lib/fail.mjs'
import { freePorts } from '../../lib/free-ports.mjs'
import { edgeProgram, storeBenchProgram } from '../../lib/paths.mjs'
import { WatchedProcess } from '../watched-process.mjs'
import { lastJson, runToEnd } from './run.mjs'

const diskMib = 2048
/** For the largest case. */
const writtenMib = 64
const startLimitMs = 20_000
const address = '127.0.0.1'

/**
 * Sends the same writes with the same client to four targets, in turns: our write caches behind an edge's stream, and
 * qcow2 above the same disk behind qemu-nbd.
 */
export async function measureWrites(directory, rounds) {
  const disk = path.join(directory, 'disk.raw')
  const file = openSync(disk, 'w')
  ftruncateSync(file, diskMib * 1_048_576)
  closeSync(file)
  const contenders = [
    { by: 'edge', measure: (scratch) => measureStream(scratch, disk, 'edge') },
    { by: 'edge_persistent', measure: (scratch) => measureStream(scratch, disk, 'edge_persistent') },
    { by: 'qcow2', measure: (scratch) => measureQcow2(scratch, disk, 'writeback') },
    { by: 'qcow2, unsafe', measure: (scratch) => measureQcow2(scratch, disk, 'unsafe') },
  ]
  const measured = []
  for (let round = 0; round < rounds; round++) {
    for (const { by, measure } of round % 2 === 0 ? contenders : contenders.toReversed()) {
      const scratch = path.join(directory, 'run')
      mkdirSync(scratch)
      for (const one of await measure(scratch)) measured.push({ by, ...one })
      rmSync(scratch, { recursive: true })
    }
  }
  return measured
}

async function load(way, to) {
  const output = await runToEnd(storeBenchProgram, [`writes-${way}`, to, '--mib', String(writtenMib)])
  return lastJson(output).cases
}

async function measureStream(scratch, disk, writeCache) {
  const names = ['dhcp', 'pxe', 'tftp', 'http', 'stream', 'peer']
  const ports = await freePorts(names.length)
  const http = ports[names.indexOf('http')]
  const edge = new WatchedProcess({
    command: edgeProgram,
    args: [
      'serve',
      '--json',
      '--listen',
      address,
      '--dhcp',
      'off',
      '--trust-mac-from',
      '127.0.0.0/8',
      '--vdisk',
      disk,
      '--data',
      path.join(scratch, 'data'),
      '--write-cache',
      writeCache,
      ...names.flatMap((name, index) => [`--${name}-port`, String(ports[index])]),
    ],
  })
  try {
    await edge.waitFor(/serving on/, startLimitMs)
    const script = await (await fetch(`http://${address}:${http}/m/52-54-00-00-00-01/boot.ipxe`)).text()
    const words = ['edge', 'boot', 'token'].map((name) => {
      const [, value] = script.match(new RegExp(`^set bootfarm_${name} (\\S+)$`, 'm')) ?? []
      if (!value) throw new UserError(`the edge gave no boot script:\n${script}`)
      return `bootfarm.${name}=${value}`
    })
    return await load('stream', words.join(' '))
  } finally {
    await edge.stop()
  }
}

async function measureQcow2(scratch, disk, cache) {
  const image = path.join(scratch, 'layer.qcow2')
  await runToEnd('qemu-img', ['create', '-q', '-f', 'qcow2', '-b', disk, '-F', 'raw', image])
  const socket = path.join(scratch, 'nbd')
  const server = new WatchedProcess({
    command: 'qemu-nbd',
    args: ['--persistent', `--cache=${cache}`, '--discard=unmap', '-f', 'qcow2', '-k', socket, image],
  })
  try {
    await untilListening(socket, server)
    return await load('nbd', socket)
  } finally {
    await server.stop()
  }
}

/** Waits until it accepts connections: its socket exists a moment earlier. */
async function untilListening(socket, server) {
  const limit = performance.now() + startLimitMs
  while (!(await takesConnections(socket))) {
    if (performance.now() > limit) throw new UserError(`qemu-nbd does not listen:\n${server.output}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

function takesConnections(socket) {
  return new Promise((resolve) => {
    const connection = net.connect(socket, () => {
      connection.destroy()
      resolve(true)
    })
    connection.once('error', () => resolve(false))
  })
}
