import { packetOf, RawDevice, readRequest } from './raw-device.ts'

/**
 * A program: a device behind a link that loses large packets. It requests its boot program in blocks of 1468 bytes,
 * receives the OACK, and keeps acknowledging it while it waits for the first block, as firmware does.
 */
const [, , server = '', mac = ''] = process.argv
const device = new RawDevice(server, mac)
const file = await device.discover(67)
await device.tftp(69, readRequest(file, { blksize: 1468, timeout: 1 }))
for (let said = 0; said < 5; said += 1) {
  device.say(69, packetOf(4, 0))
  await new Promise((resolve) => setTimeout(resolve, 400))
}
device.close()
