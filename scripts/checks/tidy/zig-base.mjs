// Names that the edge's programs take from `base` instead of Zig's standard library, which has the same.

const optimised = 'it is not optimised in debug builds'
const ways = [
  {
    pattern: /std\.crypto\.(sign|dh)\b/,
    instead: `take base.Ed25519, base.ecdsa_p256 or base.x25519; ${optimised}`,
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

/** @type {import('../tidy.mjs').Rule} */
export const zigBase = {
  name: 'zig-base',
  instead: 'the programs take it from base',
  find(sources) {
    const found = []
    for (const file of sources.files(/^edge\/streamer-zig\/src\/(?!base\/|crypto\/).*\.zig$/)) {
      for (const { pattern, instead } of ways) {
        const match = pattern.exec(sources.text(file))
        if (match) found.push({ file, what: `uses ${match[0]}: ${instead}` })
      }
    }
    return found
  },
}
