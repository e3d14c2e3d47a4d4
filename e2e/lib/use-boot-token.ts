import { randomBytes } from 'node:crypto'
import dgram from 'node:dgram'
import { parseStreamPacket } from '@bootfarm/proto/stream'
import { emitStreamPacket } from '@bootfarm/proto/stream-emit'

/**
 * A program: reads the boot script at the address it is given and opens the stream with the token in it, before the machine does.
 * Prints `used` when the edge has welcomed it.
 */
const [, , scriptUrl = ''] = process.argv
const script = await (await fetch(scriptUrl)).text()
const value = (name: string) => script.match(new RegExp(`^set ${name} (\\S+)$`, 'm'))?.[1] ?? ''
const [ip = '', port = ''] = value('bootfarm_edge').split(':')
const nonce = randomBytes(16).toString('hex')

const socket = dgram.createSocket('udp4')
socket.on('message', (bytes) => {
  const packet = parseStreamPacket(bytes)
  if (packet.type === 'cookie') sayHello(packet.cookie)
  if (packet.type !== 'welcome') return
  process.stdout.write('used\n')
  socket.close()
})
sayHello('00'.repeat(32))

function sayHello(cookie: string): void {
  const hello = emitStreamPacket({
    ...{
      type: 'hello',
      request_id: 0,
      session_id: '00'.repeat(8),
      client_nonce: nonce,
      cookie,
      kind: 'token',
    },
    boot_id: value('bootfarm_boot').replaceAll('-', ''),
    proof: value('bootfarm_token') + '00'.repeat(16),
    fragment_size_max: 1456,
  })
  socket.send(hello, Number(port), ip)
}
