import { RawDevice } from './raw-device.ts'

/** A program: a device that boots and sends far more than any boot needs before its stream. */
const [, , server = '', mac = '', count = '0'] = process.argv
const device = new RawDevice(server, mac)
await device.discover(67)
for (let sent = 0; sent < Number(count); sent += 1) {
  device.ask(67)
  // Lets the socket send its queue.
  if (sent % 50 === 0) await new Promise((resolve) => setImmediate(resolve))
}
device.close()
