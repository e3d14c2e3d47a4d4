// `node relay-main.mjs FROM TO`: forwards connections from FROM to TO, each a port of this namespace's loopback or a
// socket file.
import { runMain } from '../lib/fail.mjs'
import { relay } from './relay.mjs'

const place = (text) => (/^\d+$/.test(text) ? { port: Number(text), host: '127.0.0.1' } : { path: text })
const [from, to] = process.argv.slice(2).map(place)
await runMain(() => relay(from, to))
