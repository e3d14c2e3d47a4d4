import { randomBytes } from 'node:crypto'
import dgram from 'node:dgram'
import { emitStreamPacket } from '@bootfarm/proto/testing/stream-emit'
import { parseStreamPacket } from '@bootfarm/proto/testing/stream-parse'
import { helloProof, publicOf } from '@bootfarm/proto/testing/stream-seal'

type Hello = Extract<ReturnType<typeof parseStreamPacket>, { type: 'hello' }>

/**
 * A program: opens the stream of another machine's boot with an overheard token. Its arguments are the edge's stream,
 * the boot's id and the token, as the boot script has them. Prints `used` when the edge has sent WELCOME.
 */
const [, , edge = '', bootId = '', token = ''] = process.argv
const [ip = '', port = ''] = edge.split(':')
const hello: Hello = {
  type: 'hello',
  client_nonce: randomBytes(16).toString('hex'),
  cookie: '00'.repeat(32),
  kind: 'token',
  ciphers: ['chacha20_poly1305'],
  packet_size_max: 1472,
  boot_id: bootId.replaceAll('-', ''),
  client_public: publicOf(randomBytes(32)).toString('hex'),
  proof: '',
}
hello.proof = helloProof(Buffer.from(token, 'hex'), hello).toString('hex')

const welcomeType = 3
const socket = dgram.createSocket('udp4')
socket.on('message', (bytes) => {
  // WELCOME is sealed; its arrival is enough.
  if (bytes.readUInt8(1) === welcomeType) {
    process.stdout.write('used\n')
    socket.close()
    return
  }
  const packet = parseStreamPacket(bytes)
  if (packet.type === 'cookie') sayHello(packet.cookie)
})
sayHello(hello.cookie)

function sayHello(cookie: string): void {
  socket.send(emitStreamPacket({ ...hello, cookie }), Number(port), ip)
}
