import dgram from 'node:dgram'

/** UDP ports of 127.0.0.1 that were free a moment ago, all different. */
export async function freePorts(count: number): Promise<number[]> {
  const sockets = await Promise.all(Array.from({ length: count }, bound))
  const ports = sockets.map((socket) => socket.address().port)
  await Promise.all(sockets.map((socket) => new Promise<void>((resolve) => socket.close(() => resolve()))))
  return ports
}

function bound(): Promise<dgram.Socket> {
  return new Promise((resolve, reject) => {
    const socket = dgram.createSocket('udp4')
    socket.once('error', reject)
    socket.bind(0, '127.0.0.1', () => resolve(socket))
  })
}
