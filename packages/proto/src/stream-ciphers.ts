/** How the packets of a stream session are protected (STREAM.md), by number; `clear` means not at all. */
export const streamCiphers = ['clear', 'aegis_128l', 'chacha20_poly1305'] as const
