/**
 * Keeps one virtual machine as a rack keeps a real one: switches it on at the start and whenever a magic packet for it
 * arrives while it is off, and records its serial console. Runs in the namespace of the machine's switch; ends the
 * machine when it ends.
 */
import dgram from 'node:dgram'
import { runMain } from '../lib/fail.mjs'
import { wakes } from '../lib/machines/magic-packet.mjs'
import { ConsoleFile } from './console-file.mjs'
import { MachineKeeper } from './machine-keeper.mjs'

const wakeOnLanPort = 9

await runMain(async () => {
  /** @type {{ consoles: string, machine: import('./machine-keeper.mjs').Machine }} */
  const { consoles, machine } = JSON.parse(process.argv[2])
  const keeper = new MachineKeeper(machine, new ConsoleFile(consoles, machine.mac))
  await listenForWakeUps((datagram) => {
    if (wakes(datagram, machine.mac)) keeper.wake()
  })
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'])
    process.once(signal, () => keeper.powerOff().then(() => process.exit(0)))
  keeper.powerOn('switched on')
})

function listenForWakeUps(take) {
  const socket = dgram.createSocket('udp4', take)
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.bind(wakeOnLanPort, () => resolve())
  })
}
