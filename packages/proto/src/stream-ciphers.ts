/** How the packets of a stream's session are protected (STREAM.md), by their number; `clear` is not at all. */
export const streamCiphers = ['clear', 'aegis_128l', 'chacha20_poly1305'] as const
