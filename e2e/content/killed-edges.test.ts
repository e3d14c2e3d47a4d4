import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ControlPlane } from '../lib/control-plane/control-plane.ts'
import { ControlledEdge } from '../lib/edge/controlled-edge.ts'
import { holds, importImage, makeStore, onStore, pause, writeImage } from '../lib/edge/held-versions.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'

const imageSize = 50 << 20
const lossPercent = 3
const killIntervalMs = 5000
const scratch = scratchDirectory()
let plane: ControlPlane
let edges: ControlledEdge[] = []

/** The layer runs this file in a network namespace, whose loopback device may lose packets. */
const isAlone = process.env.BOOTFARM_OWN_NETWORK === '1'

/** Loses packets between edges: of each connection at the port of one. */
function losePackets(): void {
  const ports = edges.map(({ ports }) => ports.peer).join(', ')
  const chain = 'netdev bootfarm_loss ingress'
  const hook = '{ type filter hook ingress device "lo" priority 0; policy accept; }'
  const rules = ['dport', 'sport'].map(
    (side) => `add rule ${chain} tcp ${side} { ${ports} } numgen random mod 100 < ${lossPercent} drop`,
  )
  for (const command of ['add table netdev bootfarm_loss', `add chain ${chain} ${hook}`, ...rules])
    execFileSync('nft', [command])
}

describe.skipIf(!isAlone)(
  `edges of a site${isAlone ? '' : ' (needs a network of its own: npm test -- content)'}`,
  () => {
    beforeAll(async () => {
      const objects = path.join(scratch.path, 'objects')
      mkdirSync(objects)
      plane = await ControlPlane.start(path.join(scratch.path, 'plane'), undefined, { BOOTFARM_OBJECTS: objects })
      const first = await ControlledEdge.start(plane, path.join(scratch.path, 'edge-0'))
      edges = [first]
      for (const name of ['edge-1', 'edge-2', 'edge-3'])
        edges.push(await ControlledEdge.start(plane, path.join(scratch.path, name), [], first))
      for (const edge of edges) await makeStore(edge)
      losePackets()
    })
    afterAll(async () => {
      for (const edge of edges) await edge.stop()
      await plane?.stop()
      scratch.remove()
    })

    test('get every byte of a version right while one of them is killed every 5 s, and 3 % of packets are lost', async () => {
      const [maker] = edges
      if (!maker) throw new Error('no edge')
      const image = writeImage(maker, 'killed', imageSize)
      const made = await importImage(maker, 'killed')
      while (!(await holds(maker, made.id))) await pause()
      let kills = 0
      let killedAt = performance.now()
      const missing = new Set(edges)
      while (missing.size > 0) {
        for (const edge of missing) if (await holds(edge, made.id)) missing.delete(edge)
        if (performance.now() - killedAt < killIntervalMs && kills > 0) {
          await pause()
          continue
        }
        // The one that has the version first: the others get it from there.
        await edges[kills % edges.length]?.restart()
        killedAt = performance.now()
        kills += 1
      }
      expect(kills).toBeGreaterThan(1)
      const right = readFileSync(image)
      for (const [index, edge] of edges.entries()) {
        const copy = path.join(scratch.path, `copy-${index}.raw`)
        await onStore(edge, 'export', [copy, '--version', made.id])
        expect(readFileSync(copy).equals(right), `the copy of edge ${index}`).toBe(true)
      }
    }, 600_000)
  },
)
