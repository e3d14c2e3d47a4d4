// What the edge's programs take from `base` and not from Zig's standard library, which has the same.
import { readFileSync } from 'node:fs'
import { trackedFiles } from './tracked-files.mjs'

const optimised = 'it is not optimised in debug builds'
const ways = [
  {
    pattern: /std\.crypto\.(sign|dh)\b/,
    instead: `take base.Ed25519 or base.x25519; ${optimised}`,
  },
  {
    pattern: /std\.crypto\.(hash\.sha2\.Sha256|auth\.hmac|kdf\.hkdf)\b/,
    instead: `take base.Sha256, base.HmacSha256 or base.HkdfSha256; ${optimised}`,
  },
  {
    pattern: /std\.(mem\.sort\(|sort\.block\()/,
    instead: 'take base.sort; this one is 8 to 20 KiB of code for each type',
  },
]

export function checkZigBase() {
  const problems = []
  for (const file of trackedFiles(/^edge\/streamer-zig\/src\/(?!base\/|crypto\/).*\.zig$/)) {
    const text = readFileSync(file, 'utf8')
    for (const { pattern, instead } of ways) {
      const found = pattern.exec(text)
      if (found) problems.push(`${file}: uses ${found[0]}; ${instead}`)
    }
  }
  return problems
}
