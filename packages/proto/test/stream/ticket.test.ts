import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { openTicket, type StreamTicket, sealTicket, type TicketFormat } from './ticket.ts'

interface Vector {
  format: TicketFormat
  name: string
  key: string
  salt: string
  ticket: StreamTicket
  sealed: string
}

const vectorsOf = (format: TicketFormat): Vector[] =>
  JSON.parse(readFileSync(new URL(`../../vectors/stream-tickets-v${format}.json`, import.meta.url), 'utf8')).map(
    (vector: Vector) => Object.assign(vector, { format }),
  )
const vectors = [...vectorsOf(1), ...vectorsOf(2)]
const hex = (text: string) => Buffer.from(text, 'hex')

test.each(vectors)('a ticket $name is sealed and opened', ({ format, key, salt, ticket, sealed }) => {
  expect(sealTicket(hex(key), hex(salt), ticket).toString('hex')).toBe(sealed)
  const opened = openTicket(hex(key), hex(sealed), format).toString('hex')
  expect(opened).toContain(ticket.boot_id + ticket.version_id)
  const changed = hex(sealed)
  changed.writeUInt8(changed.readUInt8(40) ^ 1, 40)
  expect(() => openTicket(hex(key), changed, format)).toThrow()
  expect(() => openTicket(Buffer.alloc(32), hex(sealed), format)).toThrow()
})
