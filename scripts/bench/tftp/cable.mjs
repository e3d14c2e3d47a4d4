import { inNamespace, Namespaces, run } from '../namespaces.mjs'

/**
 * How packets pass the cable. `S`: the kernel cuts super-packets before they leave, as for a network card that cannot. `U`: they
 * pass whole, as for a card that cuts them itself.
 * @typedef {'S' | 'U'} Mode
 */

/** Two network namespaces joined by a veth pair: a server at one end, its clients at the other. */
export class Cable {
  /** One for each server. */
  serverIps = ['10.79.0.1', '10.79.0.3', '10.79.0.4']
  clientIp = '10.79.0.2'
  /** Addresses for clients that ask for one. */
  pool = '10.79.0.50-10.79.0.99'
  clientInterface = 'client0'
  /** Addresses that answer nothing and are all at the clients' end. */
  falseAddresses = '10.80.0.0/16'
  #namespaces = new Namespaces('tftp')
  #server = this.#namespaces.server
  #client = this.#namespaces.client

  constructor() {
    const ends = ['server0', 'type', 'veth', 'peer', 'name', this.clientInterface, 'netns', this.#client]
    run('ip', '-n', this.#server, 'link', 'add', ...ends)
    for (const ip of this.serverIps) this.#plugIn(this.#server, 'server0', ip)
    this.#plugIn(this.#client, this.clientInterface, this.clientIp)
    run('ip', '-n', this.#server, 'route', 'add', this.falseAddresses, 'via', this.clientIp)
    run('ip', '-n', this.#client, 'route', 'add', 'local', this.falseAddresses, 'dev', 'lo')
  }

  /** @param {Mode} mode */
  setMode(mode) {
    const value = mode === 'U' ? 'on' : 'off'
    const features = ['tx-udp-segmentation', value, 'gso', value]
    run('ip', 'netns', 'exec', this.#server, 'ethtool', '-K', 'server0', ...features)
  }

  onServer(program, args) {
    return inNamespace(this.#server, program, args)
  }

  onClient(program, args) {
    return inNamespace(this.#client, program, args)
  }

  remove() {
    this.#namespaces.remove()
  }

  #plugIn(namespace, device, ip) {
    run('ip', '-n', namespace, 'addr', 'add', `${ip}/24`, 'broadcast', '+', 'dev', device)
    run('ip', '-n', namespace, 'link', 'set', device, 'up')
  }
}
