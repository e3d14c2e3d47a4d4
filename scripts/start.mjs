// Plain enough for an old Node to read: names the missing version instead of failing with a syntax error.
var major = Number(process.versions.node.split('.')[0])
if (major < 18) {
  console.error(`bootfarm: Node ${process.versions.node} is too old; install Node 18 or newer and start again.`)
  process.exit(1)
}
import('./start/main.mjs')
