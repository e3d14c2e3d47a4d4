// `node scripts/release/main.mjs [--key FILE] [--out DIR] PROGRAM...`: makes signed releases of bootfarm-edge for site
// servers.
import path from 'node:path'
import { runMain, UserError } from '../lib/fail.mjs'
import { edgeProgram, inRoot } from '../lib/paths.mjs'
import { ensureReleaseKey, signEdge } from './sign-edge.mjs'

const usage = 'node scripts/release/main.mjs [--key FILE] [--out DIR] [PROGRAM...]'

await runMain(async () => {
  const options = { key: inRoot('.data/release.key'), out: inRoot('.data/edge-releases') }
  const programs = []
  const words = process.argv.slice(2)
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    const name = word.replace(/^--/, '')
    if (!word.startsWith('--')) programs.push(word)
    else if (name in options && words.length > 0) options[name] = path.resolve(words.shift())
    else throw new UserError(`${word} is not understood: ${usage}`)
  }
  const publicKey = ensureReleaseKey(options.key)
  for (const program of programs.length > 0 ? programs : [edgeProgram]) {
    const { arch, version } = signEdge({ key: options.key, out: options.out, program })
    process.stdout.write(`signed bootfarm-edge ${version} for ${arch}\n`)
  }
  process.stdout.write(`BOOTFARM_EDGE_BINARIES=${options.out}\nBOOTFARM_RELEASE_KEY=${publicKey}\n`)
})
