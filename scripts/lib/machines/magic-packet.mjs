const addressSize = 6
const repetitions = 16

/**
 * Returns whether a datagram wakes the machine with this address: six bytes ff and its address 16 times, anywhere (AMD,
 * Magic Packet Technology, publication 20213).
 * @param {Buffer} datagram
 * @param {string} mac colon-separated
 */
export function wakes(datagram, mac) {
  const address = Buffer.from(mac.replaceAll(':', ''), 'hex')
  const pattern = Buffer.concat([
    Buffer.alloc(addressSize, 0xff),
    ...Array.from({ length: repetitions }, () => address),
  ])
  return datagram.includes(pattern)
}
